"""The staircase of a survey: consistent with the verdict, restated per month."""

from fractions import Fraction

import pytest

from dashboard import data
from dashboard.ladder import Reach, curves, ladder, marks
from ledger.economics import TokenBasis, Volume
from ledger.queries import DAY_US, Scope
from ledger.standing import Against
from ledger.survey import survey

COLOURS = dict(zip(Against, ("#111111", "#222222"), strict=True))


@pytest.fixture(scope="module")
def look(books):
    filled = books(peak=60.0, days=8)
    engine = data.open_readonly(filled.url)
    scope = Scope(filled.now_us - 7 * DAY_US, filled.now_us)
    with engine.connect() as connection:
        return survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)


def test_the_model_explains_what_spilled_and_agrees_with_the_verdict(look) -> None:
    """At today's volume: API cost less own cost is, but for overflow modelled, the result."""
    steps = ladder(look, "llama-70b", Against.SUBSTITUTE, spares=0)
    (verdict, _) = look.standing.verdicts
    api = steps.volume * Fraction(verdict.average.pusd_per_token)
    modelled = float(api - steps.configured_pusd) / 1e12
    assert modelled == pytest.approx(
        float(verdict.result_pusd) / 1e12, abs=0.05 * float(api) / 1e12
    )
    assert Fraction(1, 2) < steps.explained < Fraction(3, 2)
    assert steps.scale == Fraction(720) / look.standing.hours
    assert steps.unit(1) == "1 GPU"
    assert steps.unit(3) == "3 GPUs"


@pytest.mark.parametrize("reach", list(Reach))
def test_curves_meet_where_they_say(look, reach: Reach) -> None:
    steps = ladder(look, "llama-70b", Against.SUBSTITUTE, spares=0)
    records, palette = curves(look, steps, COLOURS, reach)
    assert set(palette) == {
        "API: anthropic/claude-haiku-4-5", "API: deepinfra/llama-3.3-70b", "own, 1 GPU",
        "own, best number of GPUs",
    }  # fmt: skip
    own = [row["usd"] for row in records if row["kind"] == "own, 1 GPU"]
    ideal = [row["usd"] for row in records if row["kind"] == "own, best number of GPUs"]
    assert all(best <= one for best, one in zip(ideal, own, strict=True))
    assert own == sorted(own)
    assert ideal[0] == 0
    here, *evens = marks(look, steps, reach)
    assert here["label"] == "we are here"
    for even in evens:
        basis = TokenBasis.INPUT_OUTPUT
        tokens = Fraction(even["volume"]) / steps.scale
        cost = steps.staircase.total_pusd(steps.gpus, Volume(tokens, basis)) * steps.scale
        assert float(cost) / 1e12 == pytest.approx(even["usd"], rel=1e-6)


def test_around_today_shows_where_we_are_and_capacity_all_of_it(look) -> None:
    steps = ladder(look, "llama-70b", Against.SUBSTITUTE, spares=0)
    ends = {}
    for reach in Reach:
        records, _ = curves(look, steps, COLOURS, reach)
        ends[reach] = max(row["volume"] for row in records)
    assert float(steps.volume * steps.scale) <= ends[Reach.TODAY] / 2
    assert ends[Reach.CAPACITY] >= float(steps.capacity)


def test_spares_cost_and_add_nothing(look) -> None:
    lean = ladder(look, "llama-70b", Against.SUBSTITUTE, spares=0)
    spared = ladder(look, "llama-70b", Against.SUBSTITUTE, spares=1)
    (bill,) = look.standing.bills
    assert spared.configured_pusd - lean.configured_pusd == 400_000_000_000 * bill.hours
    assert spared.capacity == lean.capacity


def test_what_cannot_be_drawn_is_none(books) -> None:
    filled = books(rate_pusd=None, peak=3.0, days=2)
    engine = data.open_readonly(filled.url)
    scope = Scope(filled.now_us - DAY_US, filled.now_us)
    with engine.connect() as connection:
        unrated = survey(connection, scope, bucket_us=DAY_US, basis=TokenBasis.OUTPUT)
    assert ladder(unrated, "llama-70b", Against.SUBSTITUTE, spares=0) is None
