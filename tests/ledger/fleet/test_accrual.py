"""A piece of an hour is divided by what was seen in it, under the contract that counts then."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.fleet.accrual import hours_of, midnight_us, split, unavailable, version_in_force
from ledger.fleet.use import PoolUse
from ledger.orm.fleet import HOUR_US

RATE = 3_333_333_333_333
CONTRACT = {
    "billing": "reserved", "pusd_per_hour": RATE, "gpus_per_replica": 2, "replicas": 3,
    "since": None, "until": None,
}  # fmt: skip
TIMES = st.integers(0, 5 * HOUR_US)


@given(
    start=st.integers(0, HOUR_US - 1),
    length=st.integers(1, HOUR_US),
    busy=st.dictionaries(st.sampled_from("abc"), TIMES),
    down_us=TIMES,
)
def test_used_idle_and_unavailable_are_the_bill(start, length, busy, down_us):
    span = (start, min(start + length, HOUR_US))
    found = split("p", CONTRACT, span, PoolUse(busy, {}, down_us))
    close = found.close
    assert sum(close.used_pusd.values()) + close.idle_pusd + close.unavailable_pusd == (
        close.bill_pusd
    )
    assert min([close.idle_pusd, close.unavailable_pusd, *close.used_pusd.values()]) >= 0
    assert found.paid_us == 3 * (span[1] - span[0])
    assert found.unavailable_us <= found.paid_us


@given(cut=st.integers(1, HOUR_US - 1))
def test_pieces_of_an_hour_are_billed_as_the_hour(cut):
    bills = [
        split("p", CONTRACT, span, PoolUse()).close.bill_pusd
        for span in ((0, cut), (cut, HOUR_US), (0, HOUR_US))
    ]
    assert bills[0] + bills[1] == bills[2] == 6 * RATE


def test_a_machine_on_demand_is_billed_while_it_was_seen_running():
    contract = CONTRACT | {"billing": "on_demand"}
    use = PoolUse(up=[(0, HOUR_US // 4)])
    assert split("p", contract, (0, HOUR_US), use).close.bill_pusd == 6 * RATE // 4 + 1
    assert split("p", contract, (0, HOUR_US), PoolUse()).close.bill_pusd == 0


@pytest.mark.parametrize(("billing", "bill"), [("on_demand", 3 * RATE), ("reserved", 6 * RATE)])
def test_an_engine_stopped_on_purpose_is_idle_on_a_reserved_gpu_and_no_bill_on_demand(
    billing, bill
):
    """Half an hour of work, then half an hour stopped: on demand all that is paid was used."""
    half = HOUR_US // 2
    contract = CONTRACT | {"billing": billing, "replicas": 1, "gpus_per_replica": 6}
    use = PoolUse(busy_us={"a": half}, off_us=half, up=[(0, half)])
    close = split("p", contract, (0, HOUR_US), use).close
    assert abs(close.bill_pusd - bill) <= 1
    assert close.unavailable_pusd == 0
    assert close.idle_pusd == (0 if billing == "on_demand" else bill - close.used_pusd["a"])
    assert close.used_pusd["a"] == pytest.approx(3 * RATE)


@pytest.mark.parametrize(
    ("busy", "down", "paid", "found"), [(3, 4, 10, 4), (8, 4, 10, 2), (12, 4, 10, 0)]
)
def test_measured_work_leaves_less_down_time(busy, down, paid, found):
    assert unavailable({"a": busy}, down, paid) == found


def test_the_latest_version_stated_by_the_hours_end_counts():
    versions = [{"recorded_us": HOUR_US + 5}, {"recorded_us": 3 * HOUR_US}]
    assert [versions.index(version_in_force(versions, n * HOUR_US)) for n in range(4)] == [
        0,
        0,
        0,
        1,
    ]


def test_spans_are_cut_at_full_hours():
    assert list(hours_of(5, 2 * HOUR_US + 7)) == [
        (5, HOUR_US), (HOUR_US, 2 * HOUR_US), (2 * HOUR_US, 2 * HOUR_US + 7),
    ]  # fmt: skip
    assert list(hours_of(5, 5)) == []


def test_days_are_utc():
    assert midnight_us(date(2026, 5, 28)) == 1_779_926_400_000_000
    assert midnight_us(date(2026, 5, 28), days=1) == 1_780_012_800_000_000
    assert midnight_us(None) is None


def test_a_contract_until_the_last_of_all_days_is_billed():
    """31 December 9999 is written for no end: no hour of such a pool was ever closed."""
    span = (1_780_000_000_000_000, 1_780_000_000_000_000 + HOUR_US)
    found = split("p", {**CONTRACT, "until": date(9999, 12, 31)}, span, PoolUse())
    assert found.close.bill_pusd == 6 * RATE
