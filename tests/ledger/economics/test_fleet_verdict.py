"""The worked example to the cent, what changes it, and monotone properties of the verdict."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.fleet_verdict import FleetVerdict, VerdictAction, judge
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.economics.verdict_text import describe
from ledger.money import PUSD_PER_USD

POOL = PoolAssumptions("p", 2, Fraction(720), PUSD_PER_USD // 2, capacity_per_minute=10_000)
OPS = Fraction(2 * 95 * PUSD_PER_USD)
CONTRACTS = TrafficClass("contracts", None, movable=False)
BUSY = TrafficWindow((12_000, 5_000, 3_000), (0, 2_000, 0), 10_800)
QUIET = TrafficWindow((1_000, 500, 500), (0, 0, 0), 32_400)
CURVE = ValueCurve(
    (TrafficClass("chat", 2_000_000, True), TrafficClass("summ", 50_000, True), CONTRACTS),
    (BUSY, QUIET),
    2,
    10_000,
    (0, 1_080_000_000_000, 0),
)


def verdict(curve: ValueCurve = CURVE, *, month: int = 720, **changes: object) -> FleetVerdict:
    pool = replace(POOL, **changes)
    return judge(AssumptionSheet((pool,), month), {"p": curve})


def told(found: FleetVerdict) -> tuple[object, ...]:
    said = describe(found)
    return said["action"], said["gpus"], said["worth_usd_per_month"], said["worth_interval_usd"]


def movable() -> ValueCurve:
    return replace(
        CURVE,
        classes=(*CURVE.classes[:2], TrafficClass("contracts", 2_000_000, True)),
    )


def test_the_worked_example_to_the_cent() -> None:
    said = describe(verdict())
    assert [
        (line["gpus"], line["gpu_usd"], line["api_usd"], line["total_usd"], line["allowed"])
        for line in said["options"]
    ] == [
        (0, "0.00", "328.59", None, False),
        (1, "360.00", "111.78", "471.78", True),
        (2, "720.00", "1.08", "721.08", True),
        (3, "1080.00", "0.00", "1080.00", True),
    ]
    assert said["options"][1]["total_pro_rata_usd"] == "515.14"
    assert said["options"][0]["why_not"] == "contracts may not leave"
    assert told(verdict()) == ("reduce", 1, "249.30", ["205.94", "249.30"])
    assert said["sentence"] == (
        "Reduce to 1 GPU, worth $249.30 a month ($205.94 to $249.30 by what leaves first), because "
        "1 GPU and its overflow cost $471.78 and 2 cost $721.08 (ops not entered)."
    )
    assert said["options"][1]["ops_usd"] is None
    assert "ops" in said["unknown"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pusd_per_hour": PUSD_PER_USD // 4}, ("reduce", 1, "69.30", ["25.94", "69.30"])),
        ({"pusd_per_hour": PUSD_PER_USD // 5}, ("reduce", 1, "33.30", ["-10.06", "33.30"])),
        ({"ops_pusd_per_week": OPS}, ("reduce", 1, "249.30", ["205.94", "249.30"])),
        ({"curve": movable()}, ("leave", 0, "295.29", ["295.29", "295.29"])),
        (
            {"curve": replace(CURVE, windows=(), bought_pusd=(0, 0, 0))},
            ("leave", 0, "720.00", ["720.00", "720.00"]),
        ),
    ],
)
def test_what_changes_the_worked_example(changes, expected) -> None:
    assert told(verdict(**changes)) == expected


def test_at_20_cents_the_order_decides_and_the_sentence_says_so() -> None:
    found = verdict(pusd_per_hour=PUSD_PER_USD // 5)
    assert found.depends
    assert "it depends on what leaves first: pro rata, keep 2 GPUs" in describe(found)["sentence"]
    assert not verdict().depends


def test_ops_count_from_the_first_engine_on_and_by_the_month() -> None:
    lines = describe(verdict(ops_pusd_per_week=OPS))["options"]
    assert [line["ops_usd"] for line in lines] == ["0.00", "814.29", "814.29", "814.29"]
    long = describe(verdict(month=744, ops_pusd_per_week=OPS))["options"]
    assert (long[2]["gpu_usd"], long[2]["ops_usd"]) == ("744.00", "841.43")


def test_unknown_ops_say_from_where_on_leaving_pays() -> None:
    found = describe(verdict(movable(), pusd_per_hour=PUSD_PER_USD // 100))
    assert found["action"] == "keep"
    assert "leaving pays from $410.31 of ops a month" in found["sentence"]


def test_without_a_rate_there_is_no_verdict_and_the_pool_is_named() -> None:
    found = describe(verdict(pusd_per_hour=None))
    assert found["action"] is None
    assert found["sentence"] == "No verdict for pool p: enter your GPU rate."
    assert "gpu_rate" in found["unknown"]


def test_a_gpu_hour_that_is_free_is_no_saving_to_judge() -> None:
    """At $0 every further GPU that takes back a token paid, so more of them were advised."""
    found = describe(verdict(pusd_per_hour=0))
    assert (found["action"], found["options"], found["changes"]) == (None, [], [])
    assert found["sentence"].startswith("No verdict for pool p: its GPU-hour costs $0, ")
    assert "gpu_rate" not in found["unknown"], "it is known to be zero"
    assert told(verdict(pusd_per_hour=1))[0] is not None


@pytest.mark.parametrize(
    ("hours", "answers", "failures", "is_known"),
    [
        (1, 0, 4, False), (1, 99, 0, False), (1, 100, 0, True), (1, 100, 500, True),
        (167, 0, 0, False), (168, 0, 0, True), (168, 0, 4, False), (168, 4, 4, True),
        (1, None, 0, True),
    ],
)  # fmt: skip
def test_a_verdict_needs_answers_or_a_quiet_week(hours, answers, failures, is_known) -> None:
    found = describe(verdict(hours=Fraction(hours), answers=answers, failures=failures))
    assert (found["action"] is not None) is is_known
    words = "a verdict needs 100 answers, or 168 billed hours"
    assert (words in found["sentence"]) is not is_known
    assert found["options"] == [] or is_known


def test_pools_add_up_and_the_fleet_says_what_each_does() -> None:
    other = replace(POOL, pool="q", pusd_per_hour=PUSD_PER_USD // 100)
    found = judge(AssumptionSheet((POOL, other)), {"p": CURVE, "q": CURVE})
    said = describe(found)
    assert (said["action"], said["gpus"], said["gpus_now"]) == ("reduce", 3, 4)
    assert said["worth_usd_per_month"] == "249.30", "what keeping is worth is no saving"
    assert "pool p goes from 2 to 1" in said["sentence"]
    assert said["options"] == []
    assert [pool["action"] for pool in said["pools"]] == ["reduce", "keep"]


def test_a_curve_of_another_fleet_is_refused() -> None:
    with pytest.raises(ValueError, match="different engines"):
        judge(AssumptionSheet((replace(POOL, engines=3),)), {"p": CURVE})


def test_the_sheet_has_one_version_for_one_set_of_values() -> None:
    assert verdict().sheet.version == verdict().sheet.version
    assert verdict().sheet.version != verdict(pusd_per_hour=1).sheet.version


@st.composite
def cases(draw) -> tuple[PoolAssumptions, ValueCurve]:
    tokens = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
    windows = draw(
        st.lists(st.builds(TrafficWindow, tokens, tokens, st.integers(1, 2)), max_size=4)
    )
    classes = tuple(
        TrafficClass(name, draw(st.integers(0, 9)), draw(st.booleans()), draw(st.integers(1, 3)))
        for name in "abc"
    )
    engines = draw(st.integers(1, 4))
    curve = ValueCurve(
        classes,
        tuple(windows),
        engines,
        draw(st.integers(1, 80)),
        tuple(
            draw(st.integers(1, 400)) if any(window.bought[place] for window in windows) else 0
            for place in range(3)
        ),
    )
    rate = draw(st.fractions(Fraction(1, 9), 1, max_denominator=20))
    ops = draw(st.one_of(st.none(), st.integers(0, 60)))
    return PoolAssumptions("p", engines, Fraction(720), rate, ops), curve


def best(pool: PoolAssumptions, curve: ValueCurve) -> int:
    return judge(AssumptionSheet((pool,)), {"p": curve}).gpus


@settings(max_examples=25)
@given(cases(), st.fractions(0, 1, max_denominator=9))
def test_a_dearer_rate_and_more_ops_never_ask_for_more_engines(case, more) -> None:
    pool, curve = case
    assert best(replace(pool, pusd_per_hour=pool.pusd_per_hour + more), curve) <= best(pool, curve)
    dearer = replace(pool, ops_pusd_per_week=(pool.ops_pusd_per_week or 0) + 100 * more)
    assert best(dearer, curve) in (0, best(pool, curve))
    assert best(dearer, curve) <= best(pool, curve)


@settings(max_examples=25)
@given(cases(), st.integers(1, 4))
def test_dearer_apis_never_ask_for_fewer_engines(case, factor) -> None:
    pool, curve = case
    dearer = replace(
        curve,
        classes=tuple(
            replace(traffic, pusd_per_token=traffic.pusd_per_token * factor)
            for traffic in curve.classes
        ),
        bought_pusd=tuple(pusd * factor for pusd in curve.bought_pusd),
    )
    assert best(pool, dearer) >= best(pool, curve)


@settings(max_examples=25)
@given(cases(), st.integers(0, 2))
def test_what_may_not_leave_never_makes_a_month_cheaper(case, place) -> None:
    pool, curve = case
    classes = [*curve.classes]
    classes[place] = replace(classes[place], movable=False)
    tighter = replace(curve, classes=tuple(classes))
    free, bound = (judge(AssumptionSheet((pool,)), {"p": each}) for each in (curve, tighter))
    assert bound.total_pusd(best=True) >= free.total_pusd(best=True)


@settings(max_examples=25)
@given(cases())
def test_the_best_is_the_cheapest_allowed_and_its_worth_is_the_difference(case) -> None:
    pool, curve = case
    (found,) = judge(AssumptionSheet((pool,)), {"p": curve}).pools
    totals = {o.engines: o.total_pusd for o in found.options if o.allowed}
    assert totals[found.best.engines] == min(totals.values())
    for option in found.options:
        if option.allowed:
            assert option.total_pusd >= option.gpu_pusd + (option.ops_pusd or 0)
    if found.action is not VerdictAction.KEEP:
        assert found.worth_pusd == totals[pool.engines] - totals[found.best.engines] >= 0


def test_a_month_on_demand_costs_the_hours_that_are_billed() -> None:
    """Engines that stop at night once counted for every hour of the month."""
    half = verdict(billed_share=Fraction(1, 2))
    assert told(half) == told(verdict(pusd_per_hour=PUSD_PER_USD // 4))
    assert [line["gpu_usd"] for line in describe(half)["options"]] == [
        "0.00", "180.00", "360.00", "540.00",
    ]  # fmt: skip
    rates = [shift.value for shift in half.pools[0].shifts if shift.name == "gpu_rate"]
    whole = verdict(pusd_per_hour=PUSD_PER_USD // 4).pools[0].shifts
    assert rates == [2 * shift.value for shift in whole if shift.name == "gpu_rate"]
    (line,) = [line for line in half.sheet.lines if line.name == "billed_hours"]
    assert (line.value, line.unit) == ("50", "% of the month's hours")


def test_engines_that_never_ran_have_no_verdict() -> None:
    found = describe(verdict(billed_share=Fraction(0)))
    assert found["sentence"] == "No verdict for pool p: its engines ran in no hour of this period."
