"""The Fleet page on three days of a pool that sizes itself: its figures are the rows' own."""

import math
import time

import pytest

from dashboard import formatting
from dashboard.page import fleet
from ledger.database import make_engine
from ledger.economics.scaling_score import InstanceRent, PlanSum, ScoredSpan
from ledger.fleet.fleet_lease import take_lease
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks
from ledger.spans import Scope

HOUR_US = 3_600_000_000
USD = 10**12
RENT = 2_500_000_000_000


def document(wanted: int, rate: float) -> dict:
    """A plan's document, as the planner's sums make it."""
    return {
        "horizon_s": 14_400.0, "look_again_us": 0, "stop": [],
        "last": {"place": wanted, "value_pusd": 3_910_000_000_000, "rent_pusd": RENT},
        "next": {"place": wanted + 1, "value_pusd": 1_620_000_000_000, "rent_pusd": RENT},
        "forecast": [{"name": "chat", "horizon_s": 180.0, "mean": rate, "low": 0.7 * rate,
                      "high": 1.4 * rate}],
        "alternatives": [
            {"engines": count, "rent_pusd": 4 * RENT * count, "start_pusd": 0,
             "api_pusd": 40 * USD // (1 + 2 * count)} for count in range(5)
        ],
    }  # fmt: skip


def fill(url: str, now_us: int, mode: str = "act") -> int:
    """Write 72 hours; return the dollars that what ran cost less than the fixed fleet."""
    engine = make_engine(url)
    start_us = now_us // HOUR_US * HOUR_US - 72 * HOUR_US
    fence = take_lease(engine, "chat", "host:1", now_us=start_us, length_us=100 * HOUR_US)
    books = ScalingBooks(engine, "chat", fence, now_us=start_us)
    saved = count = 0
    spans = []
    for hour in range(72):
        at_us = start_us + hour * HOUR_US
        rate = 6 + 5 * math.sin(hour / 24 * 2 * math.pi)
        wanted = 1 + round(rate / 4)
        if wanted != count:
            books.record_plan(
                FleetPlanRecord(
                    "chat", at_us, mode, wanted, count, "earns_rent",
                    f"engine {wanted} avoids $3.91 an hour and costs $2.50", document(wanted, rate),
                )
            )  # fmt: skip
            change(books, at_us, "start" if wanted > count else "stop", max(wanted, count), mode)
            count = wanted
        curve = tuple(int(max(0, rate - 3 * n) * USD) for n in range(5))
        ran = PlanSum(RENT * wanted, curve[wanted])
        spans.append(ScoredSpan(at_us, HOUR_US, int(rate * 3600), ran, ran, curve, RENT, 1, 4))
        saved += 4 * RENT + curve[4] - ran.total_pusd
    books.score(PlannerMemory(now_us, {}, []), spans, {1: 5 * USD})
    engine.dispose()
    return saved


def change(books: ScalingBooks, at_us: int, verb: str, engines: int, mode: str) -> None:
    """One change, with the instance that a start begins."""
    token = f"chat.{engines - 1}.{at_us}"
    made = FleetChange(
        "chat", at_us, mode, verb, token, engines, "earns_rent",
        f"engine {engines} avoids $3.91 an hour and costs $2.50", 4 * USD, at_us + 4 * HOUR_US,
        outcome="done" if mode == "act" else None,
    )  # fmt: skip
    rent = InstanceRent(RENT)
    if mode == "act" and verb == "start":
        gone_us = at_us + 9 * HOUR_US
        books.intend(made, FleetInstance(
            token, "chat", engines - 1, True, rent, at_us, ready_us=at_us + 180_000_000,
            gone_us=gone_us))  # fmt: skip
    elif mode == "act":
        books.intend(made)
    else:
        books.advise([made])


@pytest.fixture
def sized(books, tmp_path):
    """Return a ledger with a fleet, and what its plan saved."""

    def make(mode: str = "act") -> tuple[str, int]:
        filled = books(f"sqlite:///{tmp_path / 'fleet.db'}", days=1, peak=1.0)
        return filled.url, fill(filled.url, time.time_ns() // 1000, mode)

    return make


def test_without_a_fleet_the_page_says_how_to_have_one(page, text_of, tmp_path, books) -> None:
    filled = books(f"sqlite:///{tmp_path / 'none.db'}", days=1, peak=1.0)
    assert "No pool sizes itself." in text_of(page("fleet", filled.url))


def test_the_page_says_what_is_wanted_what_it_is_worth_and_what_it_earned(
    page, text_of, sized
) -> None:
    url, saved = sized()
    shown = page("fleet", url, period="7 d")
    said = " ".join(text_of(shown).split())
    assert "avoids $3.91 an hour and costs $2.50" in said
    assert "$1.62 for one more" in said
    assert f"+${saved / USD:,.2f}" in said or f"+${saved / USD:,.0f}" in said
    assert "less than 4 engines at all times, over 3 d that were scored" in said
    assert "Advice only" not in said
    days, weighed, changes, engines = (table.value for table in shown.dataframe)
    assert days["less than fixed"].sum() == pytest.approx(saved / USD)
    assert list(weighed["engines"]) == [0, 1, 2, 3, 4]
    assert 5.0 in list(changes["realised"])
    assert set(changes["outcome"]) == {"done"}
    assert (engines["rent in this period"] > 0).all()


def test_advice_is_shown_as_advice(page, text_of, sized) -> None:
    url, _ = sized("advise")
    shown = page("fleet", url, period="7 d")
    said = text_of(shown)
    assert "Advice only: no engine is started or stopped by this plan." in said
    assert "What the advice would have earned" in said
    assert len(shown.dataframe) == 3  # no engines


def test_what_is_not_known_is_said() -> None:
    assert fleet.dollars(None) == "not known"
    assert fleet.whole_of([]) is None


def test_an_engine_s_rent_is_that_of_the_period_also_where_that_is_over() -> None:
    """It went on to the clock: a past month had the rent of this one, too."""
    row = FleetInstance("t", "chat", 0, True, InstanceRent(RENT), 0, gone_us=9 * HOUR_US)
    found = fleet.instance_row(row, Scope(2 * HOUR_US, 4 * HOUR_US))
    assert found["rent in this period"] == pytest.approx(2 * RENT / USD)
    assert fleet.engine_records(
        [FleetPlanRecord("chat", HOUR_US, "act", 2, 1, "hold", "w", {})], 4 * HOUR_US
    )[-1]["at"] == formatting.instant(4 * HOUR_US)
