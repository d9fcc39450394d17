"""What a probe sees: health and requests by place, and who keeps requests away."""

from types import SimpleNamespace

import pytest

from gateway.clock import Clock
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.control import override_changes as verbs
from gateway.scaling.fleet_probe import EngineProbe
from ledger.fleet.scaling_notes import ACTOR, PAUSE, PAUSED
from ledger.overrides import Override, store_override
from router.types import TargetHealth

TEXT = """
models: {chat: {targets: ["pool:p", "openai/x"]}}
pools: {p: {engine: {kind: simulated, model: x, replicas: 3}, gpu: {type: H200}}}
providers: {openai: {api_key_env: KEY}}
"""


class Seats:
    """An engine host whose engines are as the test says."""

    def __init__(self) -> None:
        self.health = [TargetHealth.HEALTHY, TargetHealth.HEALTHY, TargetHealth.OFF]
        self.in_flight, self.sequences = [1, 0, 0], [1, 0, 0]
        seats = [SimpleNamespace(name=f"pool:p/{n}", pool="p") for n in range(3)]
        self.runtime = SimpleNamespace(engines=[*seats, SimpleNamespace(name="pool:q/0", pool="q")])

    def snapshot(self, row: int):
        state = SimpleNamespace(health=self.health[row], running=self.sequences[row])
        return SimpleNamespace(state=state, in_flight=self.in_flight[row])


@pytest.fixture
def probe(ledger):
    settings = draft_settings(read_document(TEXT)).settings
    made = EngineProbe(Seats(), settings, ledger, "p", Clock(wall_us=lambda: 50))
    made.author = lambda by: verbs.OverrideAuthor(by, None, 40)
    made.settings, made.ledger = settings, ledger
    return made


def test_engines_are_seen_by_their_places(probe):
    assert (probe.places, probe.serving(), probe.busy()) == (
        [0, 1, 2], frozenset({0, 1}), frozenset({0}),
    )  # fmt: skip
    probe._host.in_flight, probe._host.sequences = [0, 0, 0], [0, 2, 0]
    assert probe.busy() == frozenset({1})  # requests of other hosts count as well


def test_requests_are_kept_away_once_and_let_in_again(probe):
    probe.keep_away(2, "drains: t")
    probe.keep_away(2, "drains: t")
    assert probe.away() == {2: 50}
    assert probe.parked() == [2]
    assert [item.actor for item in verbs.overrides_in_force(probe.ledger, 50)] == [ACTOR]
    probe.let_in(2)
    assert (probe.away(), probe.parked()) == ({}, [])
    probe.let_in(2)
    probe.keep_away(9, "no such place")
    assert probe.away() == {}


def test_what_a_person_holds_stays(probe):
    verbs.disable(probe.ledger, probe.settings, "pool:p", probe.author("ann"))
    probe.keep_away(1, "drains")
    assert probe.away() == {0: 40, 1: 40, 2: 40}
    probe.let_in(1)
    assert [item.actor for item in verbs.overrides_in_force(probe.ledger, 50)] == ["ann"]
    assert probe.parked() == []


@pytest.mark.parametrize(("subject", "paused"), [("*", True), ("p", True), ("q", False)])
def test_a_pause_is_of_all_pools_or_of_one(probe, subject, paused):
    assert probe.paused() is None
    given = Override(0, PAUSE + subject, PAUSED, None, 40, "ann", "audit")
    store_override(probe.ledger, given)
    assert probe.paused() == ("paused by ann: audit" if paused else None)
