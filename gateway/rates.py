"""Requests and tokens of the last minute, by account, in one file that all workers of a host map.

No minute has more than its limit, wherever it begins: an account is a ring of 61 whole seconds, and
what it sums up is at least the last 60. All accounts of a request are asked and counted under the
file's lock, so that workers cannot both take what is left for one; a worker that dies gives the
lock back by dying. What was counted a minute ago is gone, so a row whose seconds are all over is
free for another account, and the file never grows.
"""

import fcntl
import functools
import mmap
import os
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

RATES_FILE = "rates"  # in the run directory
MINUTE_S = 60
RING = MINUTE_S + 1  # the second that has begun, and a whole minute before it
ROWS = 1 << 13  # accounts in one minute, about; of a kilobyte each, once used
PROBES = 256  # rows that are looked at for one account
_NAME, _SECOND, _HEAD = 0, 1, 4
_TOTALS, _RINGS = (2, 3), (_HEAD, _HEAD + RING)  # of requests, of tokens
_WIDTH = _HEAD + 2 * RING
_CELL_BYTES = 8
KINDS = ("requests", "tokens")


class Account(NamedTuple):
    """`limits`: requests and tokens a minute; `None`: as many as come."""

    name: str
    limits: tuple[int | None, int | None]


class Room(NamedTuple):
    """What is left of one limit, and in how many seconds all of it is there again."""

    limit: int
    remaining: int
    reset_s: int


class Over(NamedTuple):
    """The limit without room. `wait_s`: until there is; `None`: the request is larger than it."""

    account: Account
    kind: str
    wait_s: int | None


class Counted(NamedTuple):
    """What was counted, and when; `rooms`: the least of requests and of tokens."""

    second: int
    tokens: int
    rooms: tuple[Room | None, Room | None]
    over: Over | None = None


class Full(Exception):
    """More accounts in one minute than the file has rows for."""


class Rates:
    """The mapped file; one of these a process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = ROWS * _WIDTH * _CELL_BYTES
        os.ftruncate(self._file, size)
        self._map = mmap.mmap(self._file, size)
        self._cells: memoryview[int] = memoryview(self._map).cast("q")

    def close(self) -> None:
        self._cells.release()
        self._map.close()
        os.close(self._file)

    def take(self, accounts: Sequence[Account], tokens: int, second: int) -> Counted:
        """Count one request of so many tokens on all accounts, or on none of them."""
        names = [_hashed(account.name) for account in accounts]
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            rows = [self._row(name, second) for name in names]
            asked = list(zip(accounts, rows, strict=True))
            over = next((one for pair in asked if (one := self._over(*pair, tokens))), None)
            if over is None:
                for row in rows:
                    self._add(row, 0, second, 1)
                    self._add(row, 1, second, tokens)
            return Counted(second, tokens, (self._room(asked, 0), self._room(asked, 1)), over)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def correct(self, accounts: Sequence[Account], counted: Counted, used: int, now: int) -> None:
        """Tokens that were really used, in place of those that were counted ahead."""
        if used == counted.tokens or now - counted.second >= RING:
            return
        names = [_hashed(account.name) for account in accounts]
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            for name in names:
                row = self._row(name, now)
                self._add(row, 1, counted.second, used - counted.tokens)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _row(self, name: int, second: int) -> int:
        """The account's first cell, its ring as it is in this second."""
        cells, free = self._cells, None
        for probe in range(PROBES):
            row = (name + probe) % ROWS * _WIDTH
            if cells[row + _NAME] == name:
                self._turn(row, second)
                return row
            if free is None and second - cells[row + _SECOND] >= RING:
                free = row
            if not cells[row + _NAME]:
                break
        if free is None:
            raise Full
        cells[free : free + _WIDTH] = _BLANK
        cells[free + _NAME], cells[free + _SECOND] = name, second
        return free

    def _turn(self, row: int, second: int) -> None:
        """Take out the seconds that are over. A clock that was set back finds nothing to do."""
        cells, last = self._cells, self._cells[row + _SECOND]
        if second <= last:
            return
        for total, ring in zip(_TOTALS, _RINGS, strict=True):
            if cells[row + total]:
                for old in range(max(last + 1, second - RING + 1), second + 1):
                    place = row + ring + old % RING
                    cells[row + total] -= cells[place]
                    cells[place] = 0
        cells[row + _SECOND] = second

    def _add(self, row: int, kind: int, second: int, count: int) -> None:
        self._cells[row + _TOTALS[kind]] += count
        self._cells[row + _RINGS[kind] + second % RING] += count

    def _over(self, account: Account, row: int, tokens: int) -> Over | None:
        for kind, more in enumerate((1, tokens)):
            limit, total = account.limits[kind], self._cells[row + _TOTALS[kind]]
            if limit is not None and total + more > limit:
                wait_s = None if more > limit else self._wait_s(row, kind, total + more - limit)
                return Over(account, KINDS[kind], wait_s)
        return None

    def _wait_s(self, row: int, kind: int, needed: int) -> int:
        """Until the oldest seconds that hold so much are over."""
        cells, now, freed = self._cells, self._cells[row + _SECOND], 0
        for second in range(now - MINUTE_S, now + 1):
            freed += cells[row + _RINGS[kind] + second % RING]
            if freed >= needed:
                return second + RING - now
        return RING

    def _room(self, asked: Sequence[tuple[Account, int]], kind: int) -> Room | None:
        """Of the account with the least left of its limit."""
        found: Room | None = None
        for account, row in asked:
            limit = account.limits[kind]
            if limit is None:
                continue
            total = self._cells[row + _TOTALS[kind]]
            left = max(0, limit - total)
            if found is None or left * found.limit < found.remaining * limit:
                found = Room(limit, left, self._reset_s(row, kind))
        return found

    def _reset_s(self, row: int, kind: int) -> int:
        cells, now = self._cells, self._cells[row + _SECOND]
        for second in range(now, now - RING, -1):
            if cells[row + _RINGS[kind] + second % RING]:
                return second + RING - now
        return 0


_BLANK = memoryview(bytes(_WIDTH * _CELL_BYTES)).cast("q")


@functools.lru_cache(maxsize=ROWS)
def _hashed(name: str) -> int:
    """Never 0, which is a row that nobody had yet."""
    digest = blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1
