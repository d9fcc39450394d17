"""Which second it is for a limit, whatever becomes of the wall clock, the machine, a worker."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.config.schema_limits import RateLimitSection
from gateway.request.limits.rate_limiter import RateLimiter
from gateway.request.limits.rate_table import (
    MINUTE_S,
    RATES_FILE,
    RING,
    HostRateShare,
    RateLimitAccount,
    RateWindowTable,
)
from ledger.identity.keys import Identity

LIMIT, HOUR_S = 5, 3600
WHO = Identity("k", None, "t", "o", ("inference",), None, "any", (), "team")
ONE = RateLimitAccount("key:k", (LIMIT, 100))


class Machine:
    """What its clocks say, and a worker that counts."""

    def __init__(self, folder: Path) -> None:
        self.now_s, self.wall_s, self.boot = 5_000.25, 1_800_000_000, "first"
        self._file = folder / RATES_FILE
        self.restart()

    def restart(self) -> None:
        clock = Clock(lambda: self.now_s, lambda: self.wall_s * 1_000_000, lambda: self.boot)
        limit = RateLimitSection(scope="key:*", requests_per_minute=LIMIT, tokens_per_minute=100)
        self.door = RateLimiter(RateWindowTable(self._file), [limit], clock)

    def passes(self, seconds: float) -> None:
        self.now_s += seconds
        self.wall_s += int(seconds)

    def let_in(self, count: int = 2 * LIMIT) -> int:
        """How many of so many."""
        uses = [asyncio.run(self.door.count(WHO, "m", 1)) for _ in range(count)]
        return sum(use.counted.over is None for use in uses)


@pytest.fixture
def machine(tmp_path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.door.close()


@pytest.mark.parametrize("by_s", [-HOUR_S, -30, 0, 30, HOUR_S])
def test_a_clock_that_is_set_gives_nothing_twice_and_locks_nobody_out(machine, by_s) -> None:
    assert machine.let_in() == LIMIT
    machine.wall_s += by_s
    assert machine.let_in() == 0
    machine.passes(MINUTE_S - 1)
    assert machine.let_in() == 0
    machine.passes(2)
    assert machine.let_in() == LIMIT
    machine.passes(RING)
    assert machine.let_in() == LIMIT


def test_a_key_that_is_another_teams_counts_there(tmp_path) -> None:
    """Red before: what a worker once found for a key was its limit for ever."""
    clock = Clock(lambda: 5_000.25, lambda: 1_800_000_000_000_000, lambda: "first")
    limits = [RateLimitSection(scope="team:t", requests_per_minute=1)]
    door = RateLimiter(RateWindowTable(tmp_path / RATES_FILE), limits, clock)
    assert asyncio.run(door.count(WHO, "m", 1)).counted.over is None
    assert asyncio.run(door.count(WHO, "m", 1)).counted.over is not None
    assert asyncio.run(door.count(replace(WHO, team_id="other"), "m", 1)) is None
    door.close()


@pytest.mark.parametrize("by_s", [-HOUR_S, 0])
def test_a_worker_that_starts_while_the_clock_is_wrong_counts_on(machine, by_s) -> None:
    assert machine.let_in() == LIMIT
    machine.wall_s += by_s
    machine.door.close()
    machine.restart()
    assert machine.let_in() == 0
    machine.passes(RING)
    assert machine.let_in() == LIMIT


@pytest.mark.parametrize("boot", ["second", "first"])  # not every system has a name for them
@pytest.mark.parametrize(("down_s", "left"), [(20, 0), (RING, LIMIT), (-HOUR_S, 0)])
def test_a_machine_that_starts_again_remembers_its_minute(machine, boot, down_s, left) -> None:
    assert machine.let_in() == LIMIT
    machine.door.close()
    machine.now_s, machine.boot = 3.0, boot
    machine.wall_s += down_s
    machine.restart()
    assert machine.let_in() == left
    machine.passes(RING)
    assert machine.let_in() == LIMIT


def test_a_lease_of_a_boot_before_is_none(tmp_path) -> None:
    """It ends by a clock that has begun anew: it would hold for as long as the machine was up."""
    now_s = [90_000.0]
    rates = RateWindowTable(tmp_path / "shared", lambda: now_s[0])
    rates.set_clock(now_s[0], 1_800_000_000, "first")
    rates.set_parts([HostRateShare(ONE, (LIMIT, 100), (2, 40))], rates.second(now_s[0]))
    rates.lease(now_s[0] + 5, now_s[0] + HOUR_S)
    rates.close()
    now_s[0] = 10.0
    again = RateWindowTable(tmp_path / "shared", lambda: now_s[0])
    again.set_clock(now_s[0], 1_800_000_300, "second")
    assert again.count_request([ONE], 1, again.second(now_s[0])).short == (ONE,)
    again.close()


class KillSignal(BaseException):
    pass


class Cells:
    """Of whom is killed after so many that were written."""

    def __init__(self, real: memoryview, writes: int) -> None:
        self.real, self.left = real, writes

    def __getitem__(self, place: int | slice) -> int | memoryview:
        return self.real[place]

    def __setitem__(self, place: int | slice, value: int | memoryview) -> None:
        if not self.left:
            raise KillSignal
        self.left -= 1
        self.real[place] = value


def counted_until_killed(file: Path, at: int, writes: int) -> bool:
    """One request, and 30 s later another; whether that one was killed in the middle."""
    rates = RateWindowTable(file)
    assert rates.count_request([ONE], 10, at).over is None
    cells = rates._cells
    rates._cells = Cells(cells, writes)
    try:
        rates.count_request([ONE], 10, at + 30)
    except KillSignal:
        return True
    finally:
        rates._cells = cells
        rates.close()
    return False


def test_who_is_killed_while_it_counts_takes_nothing_for_good(tmp_path) -> None:
    """At every place; what the one before let in stays counted for its minute, and no longer."""
    at, writes, killed = 1_000, 0, True
    while killed:
        file = tmp_path / str(writes)
        killed = counted_until_killed(file, at, writes)
        others, least = RateWindowTable(file), 1 if killed else 2
        requests, tokens = others.totals([ONE.name], at + 31)[0]
        assert least <= requests <= 2, writes
        assert 10 * least <= tokens <= 20, writes
        requests, tokens = others.totals([ONE.name], at + RING)[0]
        assert (requests <= 1, tokens <= 10) == (True, True), writes
        assert others.totals([ONE.name], at + 30 + RING) == [(0, 0)], writes
        others.close()
        writes += 1
    assert writes > 4, "the control: there are places to be killed at"
