from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.gpu_contracts import US_PER_HOUR, ContractError, GpuContract, gpu_bill_pusd

HOUR = US_PER_HOUR
RATE = 9_800_000_000_000  # $9.80: awkward per second


def contract(**fields):
    base = {"billing": "reserved", "pusd_per_hour": RATE, "gpus": 1, "since_us": 0}
    return GpuContract(**(base | fields))


TIMES = st.integers(0, 100 * HOUR)
SPANS = st.lists(st.tuples(TIMES, st.one_of(st.none(), st.integers(0, 20 * HOUR))), max_size=4).map(
    lambda pieces: tuple((a, None if d is None else a + d) for a, d in pieces)
)
CONTRACTS = st.builds(
    GpuContract,
    billing=st.sampled_from(["reserved", "on_demand", "owned"]),
    pusd_per_hour=st.integers(0, 10**14),
    gpus=st.integers(0, 64),
    since_us=st.one_of(st.none(), TIMES),
    until_us=st.one_of(st.none(), TIMES),
    power_pusd_per_hour=st.integers(0, 10**12),
    running_us=SPANS,
)


@given(CONTRACTS, st.lists(TIMES, min_size=2, max_size=8))
def test_touching_spans_add_up_to_the_unit(gpu, cuts):
    cuts = sorted(cuts)
    parts = [gpu_bill_pusd(gpu, start, stop) for start, stop in pairwise(cuts)]
    assert sum(parts) == gpu_bill_pusd(gpu, cuts[0], cuts[-1])
    assert min(parts) >= 0


def test_a_reservation_bills_every_hour_of_its_term_and_no_other():
    gpu = contract(since_us=2 * HOUR, until_us=5 * HOUR, gpus=8)
    assert gpu_bill_pusd(gpu, 0, 100 * HOUR) == 3 * 8 * RATE
    assert gpu_bill_pusd(gpu, 3 * HOUR, 4 * HOUR) == 8 * RATE
    assert gpu_bill_pusd(gpu, 0, 2 * HOUR) == 0
    assert gpu_bill_pusd(gpu, 5 * HOUR, 9 * HOUR) == 0


def test_a_crashed_or_stopped_engine_changes_no_reservation():
    up = contract(running_us=((0, None),))
    down = contract(running_us=())
    assert gpu_bill_pusd(up, 0, 24 * HOUR) == gpu_bill_pusd(down, 0, 24 * HOUR) == 24 * RATE


def test_on_demand_bills_from_start_to_stop_and_overlaps_once():
    gpu = contract(billing="on_demand", running_us=((HOUR, 3 * HOUR), (2 * HOUR, 4 * HOUR)))
    assert gpu_bill_pusd(gpu, 0, 10 * HOUR) == 3 * RATE
    still_up = contract(billing="on_demand", running_us=((HOUR, None), (2 * HOUR, 3 * HOUR)))
    assert gpu_bill_pusd(still_up, 0, 10 * HOUR) == 9 * RATE


def test_on_demand_ends_with_the_contract():
    gpu = contract(
        billing="on_demand", until_us=4 * HOUR, running_us=((HOUR, None), (9 * HOUR, None))
    )
    assert gpu_bill_pusd(gpu, 0, 10 * HOUR) == 3 * RATE


def test_owned_is_amortisation_always_and_power_while_it_runs():
    gpu = contract(
        billing="owned", power_pusd_per_hour=10**11, gpus=2, running_us=((HOUR, 3 * HOUR),)
    )
    assert gpu_bill_pusd(gpu, 0, 10 * HOUR) == 2 * (10 * RATE + 2 * 10**11)
    assert gpu_bill_pusd(contract(billing="owned"), 0, HOUR) == RATE


def test_odd_seconds_of_an_awkward_rate_lose_nothing():
    gpu = contract()
    seconds = [gpu_bill_pusd(gpu, s * 10**6, (s + 1) * 10**6) for s in range(3600)]
    assert sum(seconds) == RATE
    assert max(seconds) - min(seconds) <= 1
    assert max(seconds) != min(seconds)  # the rate does not divide: rounding did happen


def test_what_cannot_be_is_refused():
    with pytest.raises(ContractError, match="negative"):
        contract(pusd_per_hour=-1)
    with pytest.raises(ContractError, match="ends before"):
        gpu_bill_pusd(contract(), 5, 4)
