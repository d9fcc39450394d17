"""V(n) against a brute force that plays every window's requests, and its monotone properties."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.value_curve import DepartureOrder, TrafficClass, TrafficWindow, ValueCurve

PRO_RATA = DepartureOrder.PRO_RATA
CLASSES = 3


@st.composite
def curves(draw) -> ValueCurve:
    price = st.one_of(st.none(), st.fractions(0, 9, max_denominator=7))
    classes = tuple(
        TrafficClass(name, draw(price), draw(st.booleans()), draw(st.integers(1, 4)))
        for name in "abc"
    )
    tokens = st.tuples(*[st.integers(0, 30)] * CLASSES)
    windows = draw(
        st.lists(st.builds(TrafficWindow, tokens, tokens, st.integers(1, 3)), max_size=6)
    )
    return ValueCurve(
        classes,
        tuple(windows),
        draw(st.integers(1, 4)),
        draw(st.fractions(Fraction(1, 3), 40, max_denominator=5)),
        tuple(
            draw(st.integers(0, 50)) if any(window.bought[place] for window in windows) else 0
            for place in range(CLASSES)
        ),
    )


def played(curve: ValueCurve, engines: int) -> Fraction | None:
    """Play each window: what must stay is seated first, then the densest; the rest is bought."""
    cost = Fraction(sum(curve.bought_pusd))
    if engines == curve.engines:
        return cost
    paid = [
        Fraction(pusd, tokens) if tokens else Fraction(0)
        for pusd, tokens in zip(
            curve.bought_pusd,
            (sum(w.bought[n] * w.times for w in curve.windows) for n in range(CLASSES)),
            strict=True,
        )
    ]
    for window in curve.windows:
        places = range(CLASSES)
        kept = [(window.kept[n], n, curve.classes[n]) for n in places]
        whole = sum(tokens * traffic.work for tokens, _, traffic in kept)
        room = engines * Fraction(curve.capacity)
        if engines < curve.engines:
            room = max(room, Fraction(engines * whole, curve.engines))
        stays = [row for row in kept if not row[2].movable or row[2].pusd_per_token is None]
        for tokens, _, traffic in stays:
            room -= tokens * traffic.work
            if engines < curve.engines and room < 0:
                return None
        goes = [row for row in kept if row not in stays]
        for tokens, _, traffic in sorted(goes, key=lambda row: -row[2].density):
            price = Fraction(traffic.pusd_per_token)
            seated = max(0, min(room, tokens * traffic.work))
            if engines < curve.engines:
                cost += window.times * (tokens - Fraction(seated) / traffic.work) * price
                room -= seated
            else:
                room -= tokens * traffic.work
        if engines > curve.engines:
            bought = [(t, n, curve.classes[n]) for n, t in enumerate(window.bought)]
            for tokens, place, traffic in sorted(bought, key=lambda row: -row[2].density):
                seated = max(0, min(room, tokens * traffic.work))
                cost -= window.times * Fraction(seated) / traffic.work * paid[place]
                room -= seated
    return cost


@settings(max_examples=60)
@given(curves())
def test_costs_equal_those_of_requests_that_are_played_one_window_after_the_other(curve) -> None:
    densities = [traffic.density for traffic in curve.classes]
    for engines in range(curve.engines + 4):
        expected = played(curve, engines)
        if expected is None:
            assert curve.objection(engines)
            with pytest.raises(ValueError, match="may not leave"):
                curve.api_pusd(engines)
        elif engines <= curve.engines or len(set(densities)) == CLASSES:  # else ties decide
            assert curve.api_pusd(engines) == expected


@settings(max_examples=25)
@given(curves())
def test_more_engines_never_buy_more_and_never_less_than_nothing(curve) -> None:
    for order in DepartureOrder:
        costs = [
            curve.api_pusd(engines, order)
            for engines in range(curve.engines + 4)
            if curve.objection(engines) is None
        ]
        slack = Fraction(len(curve.windows) * 3, 10**6)  # pro rata is rounded by the window
        assert all(a + slack >= b >= 0 for a, b in itertools.pairwise(costs))


@settings(max_examples=25)
@given(curves(), st.integers(0, CLASSES - 1))
def test_what_must_stay_makes_nothing_cheaper_and_allows_nothing_more(curve, place) -> None:
    bound = [*curve.classes]
    bound[place] = replace(bound[place], movable=False)
    tighter = replace(curve, classes=tuple(bound))
    for engines in range(1, curve.engines + 1):
        if tighter.objection(engines) is None:
            assert curve.objection(engines) is None
            assert curve.api_pusd(engines) <= tighter.api_pusd(engines)


def test_the_order_is_by_dollars_of_engine_time_not_of_tokens() -> None:
    """A dear token that takes ten times the engine leaves before a cheap one that takes little."""
    classes = (TrafficClass("slow", 10, True, 20), TrafficClass("quick", 2, True, 1))
    curve = ValueCurve(classes, (TrafficWindow((10, 100), (0, 0)),), 2, 150, (0, 0))
    assert curve.api_pusd(1) == Fraction(150, 20) * 10
    assert curve.avoided_pusd(1) == 300 - 75
    assert curve.avoided_pusd(0) == 0


def test_a_capacity_that_is_not_known_judges_only_what_ran_and_nothing_at_all() -> None:
    traffic = (TrafficClass("chat", 3, True),)
    curve = ValueCurve(traffic, (TrafficWindow((10,), (0,)),), 2, None, (0,))
    assert [curve.objection(engines) for engines in range(4)] == [
        None, "capacity not known", None, "capacity not known",
    ]  # fmt: skip
    assert curve.api_pusd(0) == 30


def test_a_class_without_a_price_has_nowhere_to_go() -> None:
    curve = ValueCurve(
        (TrafficClass("chat", None, True),), (TrafficWindow((10,), (0,)),), 1, 10, (0,)
    )
    assert curve.objection(0) == "chat may not leave"


def test_a_window_that_held_more_than_the_capacity_shows_that_it_could() -> None:
    curve = ValueCurve((TrafficClass("chat", 1, True),), (TrafficWindow((40,), (0,)),), 2, 10, (0,))
    assert curve.api_pusd(1) == 20
    assert curve.api_pusd(1, PRO_RATA) == 20


def test_what_may_not_leave_may_wait_within_a_stretch_but_not_longer() -> None:
    """A burst of one minute is no reason to keep an engine; an hour that is full of it is."""
    classes = (TrafficClass("chat", 1, True), TrafficClass("inside", None, False))
    burst = TrafficWindow((10, 30), (0, 0))
    alone = ValueCurve(classes, (burst,), 2, 20, (0, 0))
    assert alone.objection(1) == "inside may not leave and would not fit"
    stretched = ValueCurve(classes, (burst,), 2, 20, (0, 0), ((10, 30),), 60)
    assert stretched.objection(1) is None
    assert stretched.api_pusd(1) == stretched.api_pusd(1, PRO_RATA) == 10
    full = ValueCurve(classes, (burst,), 2, 20, (0, 0), ((10, 1_300),), 60)
    assert full.objection(1) == "inside may not leave and would not fit"
