"""Reserved capacity in the verdict: the worked example with an offer, and what the options add to.

What goes to APIs by window costs what the value curve says, at every number of engines.
"""

from dataclasses import replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.assumptions import (
    AssumptionSheet,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.economics.fleet_verdict import FleetVerdict, VerdictAction, judge
from ledger.economics.reserved_capacity import ReservedOffer
from ledger.economics.value_curve import DepartureOrder, TrafficClass, TrafficWindow, ValueCurve
from ledger.economics.verdict_text import describe

USD = 10**12
MAY = ModelResidency.MAY_LEAVE
MODELS = (
    ModelAssumption("chat", MAY, "a/chat", 2_000_000),
    ModelAssumption("summ", MAY, "b/summ", 50_000),
    ModelAssumption("contracts", ModelResidency.MAY_NOT_LEAVE, None, None),
)
POOL = PoolAssumptions("p", 2, Fraction(720), USD // 2, capacity_per_minute=10_000, models=MODELS)
CURVE = ValueCurve(
    (
        TrafficClass("chat", 2_000_000, True),
        TrafficClass("summ", 50_000, True),
        TrafficClass("contracts", None, movable=False),
    ),
    (
        TrafficWindow((12_000, 5_000, 3_000), (0, 2_000, 0), 10_800),
        TrafficWindow((1_000, 500, 500), (0, 0, 0), 32_400),
    ),
    2,
    10_000,
    (0, 1_080_000_000_000, 0),
)


def verdict(*offers: ReservedOffer, curve: ValueCurve = CURVE) -> FleetVerdict:
    return judge(AssumptionSheet((POOL,), 720, reserved=offers), {"p": curve})


def test_units_that_pay_are_in_the_verdict_and_the_sheet() -> None:
    """With one engine 5,000 tokens of chat leave in each of 10,800 busy minutes: $108.00.

    A unit of 2,500 tokens a minute at 1 cent an hour is $7.20 a month and serves $54.00 of them.
    """
    offer = ReservedOffer("a/chat", 2_500, USD // 100, source="quote 7", since="2026-11-01")
    found = verdict(offer)
    said = describe(found)
    (one,) = said["options"][1]["reserved"]
    assert (one["units"], one["rent_usd"], one["overflow_usd"]) == (2, "14.40", "0.00")
    assert one["utilisation"] == "0.2500"
    assert said["options"][1]["total_usd"] == "378.18", "471.78 less 108.00, and the rent"
    assert said["worth_usd_per_month"] == "342.90"
    assert said["sentence"].startswith("Reduce to 1 GPU and reserve 2 units of a/chat, worth")
    line = next(line for line in said["assumptions"] if line["name"].startswith("reserved"))
    assert (line["value"], line["origin"], line["since"]) == ("0.01", "quote 7", "2026-11-01")
    assert found.sheet.version != verdict().sheet.version


def test_units_that_do_not_pay_change_nothing() -> None:
    dear = ReservedOffer("a/chat", 2_500, USD)
    assert describe(verdict(dear))["options"] == describe(verdict())["options"]
    other = ReservedOffer("c/none", 10**9, 1)
    assert describe(verdict(other))["options"] == describe(verdict())["options"]


def test_units_beside_the_same_engines_are_worth_what_they_save() -> None:
    """All of it stays but what is bought today: 2,000 tokens in each busy minute, $1.08."""
    stays = replace(
        CURVE, classes=tuple(replace(traffic, movable=False) for traffic in CURVE.classes)
    )
    found = verdict(ReservedOffer("b/summ", 2_000, USD // 10_000), curve=stays)
    assert found.action is VerdictAction.KEEP
    said = describe(found)
    assert said["worth_usd_per_month"] == "1.01", "1.08 less 7.2 cents"
    assert said["sentence"] == (
        "Keep 2 GPUs and reserve 1 unit of b/summ, worth $1.01 a month, because 2 GPUs and their "
        "overflow cost $720.07 and $721.08 where every token is bought by itself "
        "(ops not entered)."
    )


@st.composite
def curves(draw) -> ValueCurve:
    tokens = st.tuples(*[st.integers(0, 30)] * 3)
    windows = draw(
        st.lists(st.builds(TrafficWindow, tokens, tokens, st.integers(1, 3)), max_size=5)
    )
    classes = tuple(
        TrafficClass(name, draw(st.integers(0, 9)), draw(st.booleans()), draw(st.integers(1, 3)))
        for name in "abc"
    )
    paid = tuple(
        draw(st.integers(0, 50)) if any(w.bought[n] for w in windows) else 0 for n in range(3)
    )
    return ValueCurve(
        classes, tuple(windows), draw(st.integers(1, 3)), draw(st.integers(1, 40)), paid
    )


@settings(max_examples=50)
@given(curves())
def test_what_goes_to_apis_by_window_costs_what_the_curve_says(curve) -> None:
    bought = [sum(w.bought[n] * w.times for w in curve.windows) for n in range(3)]
    paid = [
        Fraction(p, b) if b else Fraction(0) for p, b in zip(curve.bought_pusd, bought, strict=True)
    ]
    for engines in range(curve.engines + 3):
        if curve.objection(engines) is not None:
            continue
        for order in DepartureOrder:
            cost = sum(
                times * (left[n] * curve.classes[n].pusd_per_token + kept[n] * paid[n])
                for left, kept, times in curve.at_apis(engines, order)
                for n in range(3)
            )
            assert abs(cost - curve.api_pusd(engines, order)) <= Fraction(
                len(curve.windows) * 3, 10**6
            )


@settings(max_examples=25)
@given(curves(), st.integers(1, 30), st.integers(0, 40))
def test_an_offer_never_makes_a_month_dearer_nor_cheaper_than_its_parts(curve, unit, rate) -> None:
    models = tuple(replace(MODELS[0], model=name, fallback="t") for name in "abc")
    pool = replace(POOL, engines=curve.engines, models=models, pusd_per_hour=1)
    offers = (ReservedOffer("t", unit, Fraction(rate, 100)),)
    with_units, without = (
        judge(AssumptionSheet((pool,), 720, reserved=given), {"p": curve}) for given in (offers, ())
    )
    assert with_units.total_pusd(best=True) <= without.total_pusd(best=True)
    assert with_units.total_pusd(best=False) == without.total_pusd(best=False)
    for option in with_units.pools[0].options:
        if option.allowed:
            assert option.total_pusd >= option.gpu_pusd
