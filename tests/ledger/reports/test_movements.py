"""Movers by dollars; anomalies above their own past, whatever the scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.reports.movements import LEAST_BUCKETS, SpendChange, anomalies, movers

DAY = 10
AMOUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10**15))


def test_what_moved_most_dollars_comes_first() -> None:
    found = movers({"a": 10, "b": 500, "c": 3}, {"a": 90, "b": 450, "c": 3, "d": 1})
    assert found == [SpendChange("a", 10, 90), SpendChange("b", 500, 450), SpendChange("d", 0, 1)]


@given(AMOUNTS, AMOUNTS)
def test_changes_add_up_to_the_difference(before, now) -> None:
    changes = sum(mover.change_pusd for mover in movers(before, now))
    assert changes == sum(now.values()) - sum(before.values())


def flat(days: int, **changes: int) -> list[tuple[int, str, int]]:
    return [(day * DAY, "a", changes.get(f"d{day}", 100 + day % 3)) for day in range(days)]


def found(spent, days: int) -> list[tuple[int, int]]:
    starts = range(0, days * DAY, DAY)
    return [(anomaly.start_us, anomaly.pusd) for anomaly in anomalies(spent, starts)]


def test_a_day_far_above_the_others_is_one_and_a_fall_is_none() -> None:
    assert found(flat(20, d4=900, d9=300), 20) == [(40, 900), (90, 300)]
    assert found(flat(20, d4=0), 20) == []
    assert found(flat(20), 20) == []


def test_twice_the_usual_at_least_and_enough_days() -> None:
    assert found(flat(20, d4=199), 20) == []
    few = LEAST_BUCKETS - 1
    assert found(flat(few, d4=900), few) == []


def test_a_part_of_a_day_is_no_day() -> None:
    spent = [*flat(20), (200, "a", 5_000)]
    assert anomalies(spent, range(0, 200, DAY)) == []


def test_pennies_beside_dollars_are_left_out() -> None:
    spent = [*flat(20), (50, "b", 1)]
    assert found(spent, 20) == []


@pytest.mark.parametrize("factor", [1, 10**9])
@given(amounts=st.lists(st.integers(0, 1_000), min_size=8, max_size=20))
def test_the_unit_changes_nothing(factor: int, amounts) -> None:
    starts = range(0, len(amounts) * DAY, DAY)
    plain = [(n * DAY, "a", amount) for n, amount in enumerate(amounts)]
    large = [(at, name, item * factor) for at, name, item in plain]
    told = [anomaly.start_us for anomaly in anomalies(plain, starts)]
    assert [anomaly.start_us for anomaly in anomalies(large, starts)] == told
