"""A pool's capacity: measured at its traffic, corrected by what spilled, or a floor under it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from ledger.economics.cost import TokenBasis, Volume
from ledger.economics.step_cost import load_curve, sum_windows
from ledger.fleet.bills import PoolBill
from ledger.fleet.capability import (
    CapabilitySource,
    FleetCapability,
    PoolCapability,
    combine_pools,
    floor,
    load_of,
    pool_capability,
)
from ledger.fleet.capacity import TrafficSums
from ledger.queries.load import NOTHING
from ledger.queries.reads import HOUR_US, MINUTE_US, CapacityRow, PoolLoad

BOTH, OUTPUT = TokenBasis
END_US = 1_000 * HOUR_US
HOURS = 2
BILL = PoolBill(
    pool="llama", gpu_type="H200", gpus=1, replicas=1, pusd_per_hour=1, source="c",
    simulated=False, bill_pusd=2, used_pusd=1, idle_pusd=1, unavailable_pusd=0,
    ops_pusd=Fraction(0), hours=Fraction(HOURS), available_share=Fraction(3, 4),
)  # fmt: skip
# A step takes 1 s whatever is in it; ten requests of 90 + 10 tokens fit into the cache: 10 output
# and 90 input tokens a second, 6,000 a minute.
ROW = CapacityRow("llama", "pool:llama/0", 0, 1_000, 2_000.0, 1.0, 0.0, 1e-12, 0.0, 0.0, "x", 256)
TRAFFIC = TrafficSums(10, 900, 0, 100, 9_000, 1_000)
MEASURED = 6_000


def minutes(*loads: int, over: int = 0, after: int = 0, requests: int = 30) -> PoolLoad:
    """Consecutive minutes up to the end; of the whole load, `over` tokens spilled.

    The requests that spilled are spread over five minutes, the first without tokens.
    """
    if not loads:
        return NOTHING
    first = END_US - (len(loads) + after) * MINUTE_US
    start = END_US - HOUR_US - 5 * MINUTE_US if over else first
    early = [0] * ((first - start) // MINUTE_US)
    peak = loads.index(max(loads))
    gone = [over if place == peak else 0 for place in range(len(loads))]
    each = requests // 5 if over else 0
    counts = [each] * 4 + early[4:] if over else early
    return PoolLoad(
        start,
        early + list(loads),
        early + [load - item for load, item in zip(loads, gone, strict=True)],
        early + gone,
        counts + [each if item else 0 for item in gone],
        len(loads) + (4 if over else 0),
    )


def judged(rows: PoolLoad, *, engines: tuple[CapacityRow, ...] = (ROW,), basis=BOTH, **changes):
    bill = replace(BILL, **changes)
    return pool_capability(bill, engines, TRAFFIC, rows, span_end_us=END_US, basis=basis)


def modelled(found: PoolCapability, rows: PoolLoad) -> Fraction:
    """The overflow at today's volume and today's engines, as page 2 computes it."""
    load = load_of(rows, BILL, END_US)
    curve = load_curve(sum_windows(load, found.window_minutes))
    return curve.overflow(found.per_minute * found.window_minutes, volume=curve.total)


def test_a_measured_rate_stands_when_it_explains_what_spilled() -> None:
    rows = minutes(5_000, 9_000, 2_000, over=3_000)
    found = judged(rows)
    assert (found.known, found.window_minutes) == (CapabilitySource.MEASURED, 1)
    assert float(found.per_minute) == pytest.approx(MEASURED)
    assert float(found.capability.volume.tokens) == pytest.approx(MEASURED * 60 * 2 * 0.75)
    assert found.decodes


def test_bursts_are_evened_out_over_the_window_that_explains_what_spilled() -> None:
    rows = minutes(0, 0, 9_000, 1_000, 9_000, 9_000, over=6_000)
    found = judged(rows)
    assert (found.known, found.window_minutes) == (CapabilitySource.MEASURED, 2)
    assert float(modelled(found, rows)) == pytest.approx(6_000)


def test_what_spills_beyond_the_measured_rate_tells_the_capacity() -> None:
    rows = minutes(5_000, 9_000, 2_000, over=7_000)
    found = judged(rows)
    assert (found.known, found.window_minutes) == (CapabilitySource.SPILLS, 1)
    assert found.per_minute == Fraction(14_000 - 7_000, 2)
    assert float(found.measured_per_minute) == pytest.approx(MEASURED), "what step times say stays"
    assert modelled(found, rows) == 7_000


def test_engines_that_served_more_than_computed_for_an_hour_could_do_so() -> None:
    rows = minutes(*[8_000] * 60)
    found = judged(rows)
    assert (found.known, found.window_minutes) == (CapabilitySource.SERVED, 60)
    assert found.per_minute == 8_000
    assert modelled(found, rows) == 0


def test_the_busiest_minutes_are_a_floor_and_spills_may_teach_less() -> None:
    calm = minutes(*[100] * 6, 2_000)
    rows = {
        False: judged(calm, engines=()),
        True: judged(calm, engines=(replace(ROW, step_a_s=None),)),
    }
    for row in rows.values():
        assert (row.known, row.measured_per_minute) == (CapabilitySource.FLOOR, None)
        assert row.per_minute == Fraction(2_000 + 4 * 100, 5)
    busy = minutes(*[1_000] * 6, over=900)
    learned = judged(busy, engines=())
    assert learned.known is CapabilitySource.SPILLS
    assert learned.per_minute == Fraction(6_000 - 900, 6) < floor(busy)


@pytest.mark.parametrize(("requests", "counts"), [(25, False), (30, True)])
def test_a_few_spills_teach_nothing(requests: int, counts: bool) -> None:
    rows = minutes(5_000, 9_000, 2_000, over=7_000, requests=requests)
    found = judged(rows)
    assert found.known is (CapabilitySource.SPILLS if counts else CapabilitySource.MEASURED)
    assert found.spills_tell is counts
    assert found.capability.spilled_requests == requests
    assert found.per_minute == (3_500 if counts else found.measured_per_minute)
    busy = minutes(*[1_000] * 6, over=900, requests=requests)
    unmeasured = judged(busy, engines=())
    assert unmeasured.known is (CapabilitySource.SPILLS if counts else CapabilitySource.FLOOR)


def test_one_burst_teaches_nothing_however_many_spill_in_it() -> None:
    rows = minutes(5_000, 9_000, 2_000, over=7_000)
    burst = replace(rows, spilled_requests=[900 if item else 0 for item in rows.spilled])
    found = judged(burst)
    assert (found.known, found.capability.spilled_requests) == (CapabilitySource.MEASURED, 900)
    assert found.per_minute == found.measured_per_minute


def test_engines_count_as_many_as_are_paid_for() -> None:
    """A replica that is gone left a row; two engines of three rows are two."""
    rows = tuple(replace(ROW, engine=f"pool:llama/{n}") for n in range(3))
    found = judged(minutes(100), engines=rows, replicas=2)
    assert float(found.measured_per_minute) == pytest.approx(2 * MEASURED)
    output = judged(minutes(100), engines=rows, replicas=2, basis=OUTPUT)
    assert float(output.measured_per_minute) == pytest.approx(2 * MEASURED / 10)


def test_nothing_asked_or_nothing_kept_is_no_capacity() -> None:
    assert judged(minutes()) is None
    assert judged(minutes(0)) is None
    assert judged(minutes(500, over=500)) is None


def test_the_load_has_a_minute_for_every_billed_one() -> None:
    load = load_of(minutes(7, 9, after=3), BILL, END_US)
    assert len(load) == HOURS * 60
    assert load[-5:] == [7, 9, 0, 0, 0]
    early = load_of(minutes(*[1] * 150), BILL, END_US)
    assert len(early) == 150, "what was asked before the bill began is not lost"


def able(
    tokens: int, known: CapabilitySource = CapabilitySource.MEASURED, *, decodes: bool = True
) -> PoolCapability:
    capability = FleetCapability(Volume(tokens, BOTH), known)
    return PoolCapability(capability, Fraction(1), 1, None, decodes)


def test_pools_that_decode_add_up() -> None:
    found = combine_pools(
        {"a": able(600), "b": able(400, CapabilitySource.SPILLS)}, {"a": 100, "b": 1}, BOTH
    )
    assert found == FleetCapability(Volume(1_000, BOTH), CapabilitySource.SPILLS)


def test_an_embedding_pools_room_is_none_for_chat() -> None:
    """Chat is half full, embeddings at a thousandth: twice of this mix fits, not a thousandfold."""
    pools = {"chat": able(1_000), "embed": able(10**9, decodes=False)}
    found = combine_pools(pools, {"chat": 500, "embed": 10**6}, BOTH)
    assert found == FleetCapability(Volume(2 * (500 + 10**6), BOTH), CapabilitySource.MEASURED)
    assert combine_pools(pools, {"chat": 500, "embed": 0}, BOTH).volume.tokens == 1_000
    assert combine_pools(pools, {"chat": 500}, OUTPUT).volume.basis is OUTPUT


def test_a_pool_that_ranks_has_no_room_for_embeddings() -> None:
    pools = {"embed": able(1_000, decodes=False), "rank": able(100, decodes=False)}
    kinds = {"embed": frozenset({"embedding"}), "rank": frozenset({"rerank"})}
    served = {"embed": 100, "rank": 100}
    assert combine_pools(pools, served, BOTH, kinds=kinds).volume.tokens == 200
    alike = dict.fromkeys(pools, frozenset({"embedding"}))
    assert combine_pools(pools, served, BOTH, kinds=alike).volume.tokens == 1_100  # the control


def test_a_pool_without_a_figure_adds_none() -> None:
    found = combine_pools({"a": able(600), "b": None}, {"a": 100}, BOTH)
    assert found == FleetCapability(Volume(600, BOTH), CapabilitySource.MEASURED)
    assert combine_pools({"b": None}, {}, BOTH) is None
    assert combine_pools({"a": able(600)}, {"a": 0}, BOTH) is None, (
        "without a mix there is no figure"
    )
