"""No minute has more than its limit, wherever it begins, whoever counts; then it is forgotten."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.request.limits import rate_table as module
from gateway.request.limits.rate_table import (
    KINDS,
    MINUTE_S,
    RING,
    HostRateShare,
    LimitHeadroom,
    RateLimitAccount,
    RateTableFull,
    RateWindowTable,
)

SECOND = 1_800_000_000
ONE = RateLimitAccount("key:a", (10, 1000))


@pytest.fixture
def rates(tmp_path):
    made = RateWindowTable(tmp_path / "rates")
    yield made
    made.close()


def steps(most: int = 40):
    """(seconds since the last one, tokens)."""
    return st.lists(st.tuples(st.integers(0, 40), st.integers(0, 400)), max_size=most)


@settings(max_examples=60)
@given(steps())
def test_no_minute_has_more_than_its_limit(tmp_path_factory, asked) -> None:
    rates, taken, now = RateWindowTable(tmp_path_factory.mktemp("rates") / "rates"), [], SECOND
    for later_s, tokens in asked:
        now += later_s
        minute = [taken_value for taken_value in taken if taken_value[0] > now - RING]
        counted = rates.count_request([ONE], tokens, now)
        fits = len(minute) < 10 and sum(each_minute[1] for each_minute in minute) + tokens <= 1000
        assert (counted.over is None) is fits
        if fits:
            taken.append((now, tokens))
            continue
        assert counted.over.wait_s is not None
        before = RateWindowTable(tmp_path_factory.mktemp("again") / "rates")
        for at, had in taken:
            assert before.count_request([ONE], had, at).over is None
        wait_s = counted.over.wait_s
        again = before.count_request([ONE], tokens, now + wait_s)
        # The first limit that is in the way names its own wait: the other may want a longer one.
        assert again.over is None or again.over.kind != counted.over.kind
        before.close()
    rates.close()


def test_all_accounts_or_none_and_the_least_room_is_told(rates) -> None:
    team = RateLimitAccount("team:t", (2, None))
    assert rates.count_request([ONE, team], 7, SECOND).rooms == (
        LimitHeadroom(2, 1, 61),
        LimitHeadroom(1000, 993, 61),
    )
    assert rates.count_request([ONE, team], 7, SECOND).over is None
    refused = rates.count_request([ONE, team], 7, SECOND + 3)
    assert (refused.over.account, refused.over.kind, refused.over.wait_s) == (team, "requests", 58)
    assert rates.count_request([ONE], 7, SECOND + 3).rooms[0] == LimitHeadroom(10, 7, 61), (
        "it was not counted there"
    )


def test_who_asks_for_more_than_the_limit_need_not_come_again(rates) -> None:
    assert rates.count_request([ONE], 1001, SECOND).over.wait_s is None


@pytest.mark.parametrize("used", [0, 40, 400])
def test_what_was_really_used_stands_in_its_second(rates, used) -> None:
    counted = rates.count_request([ONE], 100, SECOND)
    rates.correct([ONE], counted, used, SECOND + 30)
    assert rates.count_request([ONE], 0, SECOND + 30).rooms[1].remaining == 1000 - used
    assert rates.count_request([ONE], 0, SECOND + MINUTE_S).rooms[1].remaining == 1000 - used
    beyond = max(0, used - 100)
    assert rates.count_request([ONE], 0, SECOND + RING).rooms[1].remaining == 1000 - beyond
    assert rates.count_request([ONE], 0, SECOND + 30 + RING).rooms[1].remaining == 1000


def test_of_a_long_answer_what_came_late_counts_in_its_own_minute(rates) -> None:
    """Red before: an answer of more than a minute took no more than was counted ahead."""
    counted = rates.count_request([ONE], 100, SECOND)
    rates.correct([ONE], counted, 900, SECOND + RING)
    assert rates.count_request([ONE], 0, SECOND + RING).rooms[1].remaining == 1000 - 800
    less = rates.count_request([ONE], 100, SECOND + RING)
    rates.correct([ONE], less, 0, SECOND + 2 * RING)
    assert rates.count_request([ONE], 0, SECOND + 2 * RING).rooms[1].remaining == 1000


def test_a_clock_that_is_set_back_lets_nobody_in(rates) -> None:
    for _ in range(10):
        assert rates.count_request([ONE], 0, SECOND).over is None
    assert rates.count_request([ONE], 0, SECOND - 30).over.kind == KINDS[0]


def test_rows_of_others_minutes_are_used_again(rates, monkeypatch) -> None:
    monkeypatch.setattr(module, "PROBES", 3)
    monkeypatch.setattr(module, "ROWS", 3)
    for name in "abc":
        rates.count_request([RateLimitAccount(name, (1, None))], 0, SECOND)
    with pytest.raises(RateTableFull):
        rates.count_request([RateLimitAccount("d", (1, None))], 0, SECOND + MINUTE_S)
    assert rates.count_request([RateLimitAccount("d", (1, None))], 0, SECOND + RING).over is None
    assert rates.count_request([RateLimitAccount("a", (1, None))], 0, SECOND + RING).over is None


def test_models_that_clients_make_up_take_nobody_elses_rows(rates, monkeypatch) -> None:
    """Red before: names behind `provider/*` filled the file, and every other key got 503."""
    monkeypatch.setattr(module, "PROBES", 16)

    def count_made_up(first: int) -> None:
        for number in range(first, first + 10_000):
            rates.count_request([RateLimitAccount(f"model:alpha/{number}", (9, None))], 0, SECOND)

    for first in (0, 10_000, 20_000):
        with pytest.raises(RateTableFull):
            count_made_up(first)
    for number in range(300):
        assert rates.count_request([RateLimitAccount(f"key:{number}", (1, 1))], 0, SECOND)
    again = RateLimitAccount("model:alpha/0", (9, None))
    assert rates.count_request([again], 0, SECOND).rooms[0].remaining == 7


WORKER = """
import json, sys
from pathlib import Path
from gateway.request.limits.rate_table import RateLimitAccount, RateWindowTable
rates = RateWindowTable(Path(sys.argv[1]))
sys.stdin.read(1)
accounts = [RateLimitAccount("k", (500, None))]
taken = [rates.count_request(accounts, 0, 1_800_000_000).over is None for _ in range(400)]
print(json.dumps(sum(taken)))
"""


def counted_by(files: list[str]) -> list[int]:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for file in files
    ]  # fmt: skip
    for worker in workers:
        worker.stdin.write("x")
        worker.stdin.flush()
    return [json.loads(worker.communicate(timeout=60)[0]) for worker in workers]


def test_processes_together_take_no_more_and_no_less(tmp_path) -> None:
    found = counted_by([str(tmp_path / "rates")] * 3)
    assert sum(found) == 500, found
    apart = counted_by([str(tmp_path / f"own{worker}") for worker in range(3)])
    assert Counter(apart) == {400: 3}, "the control: each by itself lets in as many as come"


@pytest.fixture
def shared(tmp_path):
    """A host's file of parts, and its monotonic clock in a list."""
    clock = [100.0]
    made = RateWindowTable(tmp_path / "shared", lambda: clock[0])
    made.lease(105.0, 200.0)
    yield made, clock
    made.close()


def taken(rates: RateWindowTable, account: RateLimitAccount = ONE, tokens: int = 0) -> int:
    """How many more are let in."""
    count = 0
    while rates.count_request([account], tokens, SECOND).over is None:
        count += 1
    return count


def test_no_more_than_its_part_is_let_in_and_who_is_short_is_named(shared) -> None:
    rates, _ = shared
    assert rates.count_request([ONE], 0, SECOND).short == (ONE,), "no part yet"
    rates.set_parts([HostRateShare(ONE, (4, 500), (2, 250))], SECOND)
    assert taken(rates) == 4
    refused = rates.count_request([ONE], 0, SECOND)
    assert (refused.short, refused.over.wait_s) == ((ONE,), module.ELSEWHERE_S)
    assert refused.rooms[0] == LimitHeadroom(10, 0, 61)
    rates.set_parts([HostRateShare(ONE, (10, 500), (2, 250))], SECOND)
    assert taken(rates) == 6
    assert rates.count_request([ONE], 0, SECOND).short == (), "the limit itself: no host has more"
    assert rates.count_request([ONE], 0, SECOND).over.wait_s == RING


def test_without_its_lease_a_host_goes_on_with_what_it_keeps_and_not_for_good(shared) -> None:
    rates, clock = shared
    rates.set_parts([HostRateShare(ONE, (8, 1000), (3, 400))], SECOND)
    clock[0] = 105.0
    assert taken(rates) == 3
    clock[0] = 104.9
    assert taken(rates) == 5
    clock[0] = 200.0
    assert rates.count_request([ONE], 0, SECOND + RING).short == (ONE,)


def test_what_is_idle_is_given_and_what_was_let_in_is_not(shared) -> None:
    rates, _ = shared
    part = HostRateShare(ONE, (10, 1000), (9, 900))
    rates.set_parts([part], SECOND)
    assert rates.count_request([ONE], 300, SECOND).over is None
    assert rates.lower_part(part, (1, 0), SECOND) == HostRateShare(ONE, (6, 1000), (6, 900)), (
        "half of its room"
    )
    assert rates.lower_part(HostRateShare(ONE, (6, 1000), (6, 900)), (100, 100), SECOND).held == (
        1,
        650,
    )
    assert rates.totals(["key:a"], SECOND) == [(1, 300)]
    assert taken(rates) == 0


def test_a_part_of_another_limit_is_none_and_parts_that_are_not_stated_are_gone(shared) -> None:
    rates, _ = shared
    rates.set_parts([HostRateShare(ONE, (10, 1000), (10, 1000))], SECOND)
    assert taken(rates, RateLimitAccount("key:a", (20, 1000))) == 0
    rates.replace_parts(
        [HostRateShare(RateLimitAccount("key:b", (10, None)), (5, 0), (5, 0))], SECOND
    )
    assert taken(rates) == 0
    assert taken(rates, RateLimitAccount("key:b", (10, None)), tokens=10**6) == 5


def test_a_file_has_a_name_for_good(tmp_path) -> None:
    names = set()
    for _ in range(2):
        rates = RateWindowTable(tmp_path / "rates")
        names.add(rates.file_id())
        rates.close()
    assert len(names) == 1
    other = RateWindowTable(tmp_path / "other")
    assert {other.file_id()} != names
    other.close()
