"""A reset is an order in the list of overrides that is over at once."""

import pytest

from gateway.control.estimate_resets import EstimateReset, resets_of, store_reset
from gateway.control.override_changes import OverrideAuthor, overrides_in_force
from ledger.database import make_engine, migrate, sqlite_url
from ledger.overrides import DISABLED, Override, overrides, store_override

ANN = OverrideAuthor("ann", "a lie", 1_000)


@pytest.fixture
def ledger(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    engine = make_engine(url)
    yield engine
    engine.dispose()


def test_it_is_kept_with_who_and_why_and_never_stands(ledger) -> None:
    store_override(ledger, Override(0, "target:a", DISABLED, None, 1, "bob"))
    said = store_reset(ledger, ANN, model='a"b', team=None)
    assert (said.number, said.actor, said.note, said.recorded_us) == (2, "ann", "a lie", 1_000)
    assert [stand.subject for stand in overrides_in_force(ledger, 1_000)] == ["target:a"]
    assert resets_of(overrides(ledger)) == [EstimateReset(2, 'a"b', None, 1_000)]


def test_the_newest_of_each_counts_in_the_order_of_their_numbers(ledger) -> None:
    for team in ("t", "s", "t"):
        store_reset(ledger, ANN, model=None, team=team)
    found = [(reset.number, reset.team) for reset in resets_of(overrides(ledger))]
    assert found == [(2, "s"), (3, "t")]
    assert [reset.number for reset in resets_of(overrides(ledger), after=2)] == [3]


def test_a_target_is_named_beside_models_and_teams(ledger) -> None:
    store_reset(ledger, ANN, model=None, team=None, target="p/m")
    store_reset(ledger, ANN, model=None, team=None)
    store_reset(ledger, ANN, model="m", team=None)
    found = resets_of(overrides(ledger))
    assert [(reset.target, reset.of_texts, reset.of_targets) for reset in found] == [
        ("p/m", False, True), (None, True, True), (None, True, False),
    ]  # fmt: skip
    assert [reset.covers("m", "t") for reset in found] == [False, True, True]


@pytest.mark.parametrize(
    ("model", "team", "covered"),
    [(None, None, True), ("m", None, True), (None, "t", True), ("m", "t", True),
     ("n", "t", False), ("m", "s", False)],
)  # fmt: skip
def test_it_covers_what_it_names(model, team, covered) -> None:
    assert EstimateReset(1, model, team, 0).covers("m", "t") is covered
