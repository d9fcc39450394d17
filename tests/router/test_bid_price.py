"""The bid price: a fractional knapsack of the window, against one that sorts every request."""

from itertools import pairwise
from math import inf
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.bid_price import (
    BINS,
    BINS_PER_OCTAVE,
    CELLS,
    FILL,
    UNKNOWN_MARKET,
    UNPLACED,
    WIDE_SPREAD,
    WINDOW_S,
    BidPrice,
    DemandSums,
    DemandWindow,
    bin_of,
    demand_of,
    density_at,
    market_of,
)
from router.bid_price import DemandSample as Asks
from router.types import Policy, Slo, StepModel

EXACT_SECONDS = st.integers(1, 128).map(lambda parts: parts / 64)  # add up without a rest
RATIO = 2.0 ** (1 / BINS_PER_OCTAVE)  # of a bin's edges


def knapsack(asked: list[tuple[float, float]], room_s: float) -> float:
    """The density at which the densest first have spent the room; 0 when it is enough."""
    for seconds, density in sorted(asked, key=lambda request: -request[1]):
        room_s -= seconds
        if room_s < 0.0:
            return density
    return 0.0


def counted(asked: list[tuple[float, float]], unplaced: int = 0) -> tuple[float, ...]:
    """The last `unplaced` of them find no room."""
    demand = DemandSums()
    for left, (seconds, density) in zip(reversed(range(len(asked))), asked, strict=True):
        demand.add(Asks("a", seconds, density, None, left < unplaced))
    return demand.sums()


def market(asked: list[tuple[float, float]], engine_seconds: float, unplaced: int = 0) -> BidPrice:
    sums = counted(asked, unplaced)
    return market_of(
        sums[:BINS],
        sums[BINS : 2 * BINS],
        engine_seconds=engine_seconds,
        unplaced_s=sums[UNPLACED],
    )


def test_bins_cover_the_densities_and_keep_their_order() -> None:
    edges = [density_at(place) for place in range(BINS + 1)]
    assert all(low < high for low, high in pairwise(edges))
    for place in (0, 17, BINS - 1):
        assert bin_of(edges[place] * 1.001) == place
    assert [bin_of(density) for density in (0.0, -1.0, 1e-9, inf, 1e99)] == [
        0, 0, 0, BINS - 1, BINS - 1,
    ]  # fmt: skip
    assert bin_of(float("nan")) == 0


@given(
    st.lists(st.tuples(st.floats(0.01, 2.0), st.floats(1e7, 1e11)), min_size=1, max_size=60),
    st.floats(0.1, 60.0),
)
def test_the_price_is_that_of_the_sorted_requests(asked, engine_seconds) -> None:
    found = market(asked, engine_seconds).bid_price
    expected = knapsack(asked, FILL * engine_seconds)
    if expected and found:
        assert expected / RATIO <= found <= expected * RATIO
    else:  # sums of floats differ in their last digit where all of it just fits
        total = sum(seconds for seconds, _ in asked)
        assert found == expected or total == pytest.approx(FILL * engine_seconds)


@given(
    st.lists(st.tuples(EXACT_SECONDS, st.floats(1e7, 1e11)), min_size=1, max_size=60),
    st.floats(0.1, 60.0),
    st.integers(0, 60),
)
def test_what_found_no_room_is_missing_from_the_time_of_a_wide_market(
    asked, engine_seconds, unplaced
) -> None:
    """The densest first, until as much is spent as found room; alike densities know nothing."""
    found, plain = market(asked, engine_seconds, unplaced), market(asked, engine_seconds)
    assert found._replace(bid_price=0.0) == plain._replace(bid_price=0.0)
    assert found.bid_price >= plain.bid_price
    if plain.density_spread < WIDE_SPREAD:
        assert found == plain
        return
    placed = sum(seconds for seconds, _ in asked[: max(0, len(asked) - unplaced)])
    expected = knapsack(asked, min(FILL * engine_seconds, placed))
    if expected:
        assert expected / RATIO <= found.bid_price <= expected * RATIO


def test_there_is_no_price_while_everything_fits() -> None:
    asked = [(0.5, 1e9), (0.4, 2e9)]
    assert market(asked, 1.0).bid_price == 0.0
    assert market(asked, 0.9).bid_price > 0.0


def test_one_density_that_does_not_fit_is_its_own_price() -> None:
    found = market([(1.0, 1e9)] * 10, 5.0)
    assert 1e9 / RATIO <= found.bid_price <= 1e9 * RATIO
    assert found.density_spread <= RATIO


def test_spread_and_top_are_by_number_of_requests() -> None:
    asked = [(0.001, 1e9)] * 60 + [(1.0, 4e9)] * 40
    found = market(asked, 1000.0)
    assert found.density_spread == pytest.approx(4.0, rel=0.1)
    assert found.top_density == pytest.approx(4e9, rel=0.05)


def test_nothing_asked_is_nothing_known() -> None:
    assert market([], 10.0) == UNKNOWN_MARKET


def test_the_window_forgets_and_counts_the_engines_time() -> None:
    window, demand = DemandWindow(), DemandSums()
    assert window.read(demand.sums(), 0.0, engines=1) == UNKNOWN_MARKET
    for second in range(1, 11):  # two engine-seconds a second
        demand.add(Asks("a", 2.0, 1e9))
        busy = window.read(demand.sums(), float(second), engines=1)
    assert busy.bid_price > 0.0
    assert window.read(demand.sums(), 10.5, engines=3).bid_price == 0.0  # three engines carry it
    for second in range(11, 42):
        idle = window.read(demand.sums(), float(second), engines=1)
    assert idle == UNKNOWN_MARKET
    assert WINDOW_S == 30.0


def test_no_engine_has_no_price() -> None:
    window, demand = DemandWindow(), DemandSums()
    window.read(demand.sums(), 0.0, engines=1)
    demand.add(Asks("a", 9.0, 1e9))
    assert window.read(demand.sums(), 1.0, engines=0) == UNKNOWN_MARKET


def test_sums_that_a_death_lowered_are_no_negative_demand() -> None:
    window, demand = DemandWindow(), DemandSums()
    demand.add(Asks("a", 5.0, 1e9))
    window.read(demand.sums(), 0.0, engines=1)
    assert window.read([0.0] * CELLS, 1.0, engines=1) == UNKNOWN_MARKET


def test_readings_are_bounded() -> None:
    window = DemandWindow()
    for tick in range(500):
        window.read([0.0] * CELLS, float(tick), engines=1)
    assert len(window._readings) <= WINDOW_S + 2


@pytest.mark.parametrize("lull", [1, 12, 29, 30, 31, 45, 400])
def test_a_window_read_only_before_and_after_a_lull_says_the_same(lull: int) -> None:
    """Readings of what nobody added to need not be made, also where the engine was full."""
    demands = DemandSums(), DemandSums()
    every, ends = DemandWindow(), DemandWindow()
    for second in range(100 + lull):
        quiet = 50 < second < 50 + lull
        for demand in demands if not 50 <= second < 50 + lull else ():
            demand.add(Asks("a", 1.0 + second % 3, 2.0 ** (30 + second % 5)))
        said = every.read(demands[0].sums(), float(second), engines=1)
        if not quiet or second == 49 + lull:
            assert ends.read(demands[1].sums(), float(second), engines=1) == said, second
    assert said.bid_price > 0.0


def test_sums_are_the_same_object_until_something_is_added() -> None:
    demand = DemandSums()
    before = demand.sums()
    assert demand.sums() is before
    demand.add(Asks("a", 1.0, 1e9))
    assert demand.sums() != before


def test_demand_is_one_entry_a_pool_admitted_or_not() -> None:
    engine = SimpleNamespace(step=StepModel(0.01, 0.0, 0.0, 1e-4, 0.02), step_feedback=1.0)

    def verdict(
        pool: str | None, seconds: float | None, density: float | None, feasible: bool = True
    ):
        return SimpleNamespace(
            candidate=SimpleNamespace(pool=pool, engine=engine),
            feasible=feasible,
            engine_seconds=seconds,
            density_pusd_per_s=density,
        )

    decision = SimpleNamespace(
        verdicts=(
            verdict("a", 0.5, 2e9), verdict(None, None, None), verdict("a", 0.6, 1e9),
            verdict("b", None, None), verdict("b", 0.1, 3e9, feasible=False),
        )
    )  # fmt: skip
    asked = SimpleNamespace(prompt_tokens=100)  # 40 ms on an empty engine
    for limit, kept in ((None, None), (39.0, None), (200.0, 200.0)):
        found = demand_of(decision, asked, Policy("p", Slo(ttft_ms=limit)))
        assert found == [Asks("a", 0.5, 2e9, kept), Asks("b", 0.1, 3e9, kept, unplaced=True)]
