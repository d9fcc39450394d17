"""Units of reserved capacity against every number of them, and what they may never do."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.reserved_capacity import ReservedOffer, TargetDemand, plan_reserved

USD = 10**12
HOURS = 720
OFFER = ReservedOffer("a/chat", 1_000, USD)


@st.composite
def cases(draw):
    windows = draw(
        st.lists(st.tuples(st.integers(0, 90), st.integers(1, 3)), min_size=1, max_size=6)
    )
    offer = ReservedOffer(
        "t", draw(st.integers(1, 20)), draw(st.integers(0, 30)), draw(st.integers(1, 5)),
        draw(st.integers(1, 3)),
    )  # fmt: skip
    demand = TargetDemand(
        [(Fraction(tokens), times) for tokens, times in windows],
        draw(st.integers(1, 4)),
        Fraction(draw(st.integers(0, 9_000))),
        draw(st.fractions(1, 3, max_denominator=4)),
    )
    return offer, demand


def cost(offer: ReservedOffer, demand: TargetDemand, units: int) -> Fraction:
    """A month with so many units: rent, and every window's overflow at the price of a token."""
    price = demand.pusd / demand.tokens if demand.tokens else Fraction(0)
    room = units * offer.tokens_per_minute * demand.minutes
    over = sum(max(Fraction(0), tokens - room) * times for tokens, times in demand.windows)
    return units * Fraction(offer.pusd_per_hour) * 9 + over * price * demand.pace


@settings(max_examples=60)
@given(cases())
def test_the_units_are_the_cheapest_of_all_numbers_that_are_sold(case) -> None:
    offer, demand = case
    found = plan_reserved(offer, demand, month_hours=9, period_minutes=60)
    sold = [n for n in range(offer.step, 120, offer.step) if n >= offer.least_units]
    alone = cost(offer, demand, 0)
    best = min(cost(offer, demand, units) for units in sold)
    if found is None:
        assert best >= alone
    else:
        assert found.units in sold
        assert cost(offer, demand, found.units) == best < alone
        assert found.rent_pusd + found.overflow_pusd == best
        assert found.saved_pusd == alone - best


@settings(max_examples=30)
@given(cases(), st.integers(1, 9))
def test_a_dearer_unit_is_never_reserved_more(case, more) -> None:
    offer, demand = case
    dear = ReservedOffer("t", offer.tokens_per_minute, Fraction(offer.pusd_per_hour) + more,
                         offer.least_units, offer.step)  # fmt: skip
    first, second = (
        plan_reserved(each, demand, month_hours=9, period_minutes=60) for each in (offer, dear)
    )
    assert (0 if second is None else second.saved_pusd) <= (
        0 if first is None else first.saved_pusd
    )


def test_by_hand() -> None:
    """2,500 tokens in every minute of a month at $50 per 1M: 108M tokens, $5,400.

    A unit serves 43.2M, $2,160, for $720 of rent. The third one serves 21.6M, $1,080.
    """
    minutes = HOURS * 60
    demand = TargetDemand([(Fraction(2_500), minutes)], 1, Fraction(5_400 * USD), Fraction(1))
    found = plan_reserved(OFFER, demand, month_hours=HOURS, period_minutes=minutes)
    assert (found.units, found.rent_pusd, found.overflow_pusd) == (3, 2_160 * USD, 0)
    assert found.saved_pusd == (5_400 - 2_160) * USD
    assert found.utilisation == Fraction(5, 6)


def test_nothing_is_reserved_for_nothing() -> None:
    demand = TargetDemand([], 1, Fraction(0), Fraction(1))
    assert plan_reserved(OFFER, demand, month_hours=HOURS, period_minutes=60) is None
