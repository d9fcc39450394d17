"""Requests and tokens of the last minute by account, in a file mapped by a host's workers.

No minute exceeds its limit, wherever it begins: an account is a ring of 61 seconds, which covers at
least the last 60. A file lock guards each count; a worker that dies frees it. A row without counts
in the last minute is free for another account, so the file never grows. Where hosts share a limit,
each has a part of it here (`gateway.host.rate_limit_service`), valid while the host's lease runs;
after that, `kept`, which is less. Seconds follow the monotonic clock: a wall clock set back would
count requests into an endless minute, one set forward would forget them.
"""

import fcntl
import functools
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from gateway.fleet.mapped_file import allocate_blocks

RATES_FILE = "rates.parts"  # in the run directory
MINUTE_S = 60
RING = MINUTE_S + 1  # the current second, and a whole minute before it
ROWS = 1 << 13  # accounts in one minute, about; of a kilobyte each, once used
MADE_UP_ROWS = 1 << 11  # separate rows for names that clients make up, which so fill no others
_FIRST_MADE_UP, _EVERY_ROW = ROWS, ROWS + MADE_UP_ROWS
PROBES = 256  # rows searched for one account
ELSEWHERE_S = 5  # until freed room of other hosts may be available here
_NAME, _SECOND, _HEAD = 0, 1, 10
_TOTALS, _RINGS = (2, 3), (_HEAD, _HEAD + RING)  # of requests, of tokens; so are the next three
_PARTS, _KEPT, _LIMITS = (4, 5), (6, 7), (8, 9)  # of its host, and the limits that they belong to
_WIDTH = _HEAD + 2 * RING
_FILE_ID, _LEASE_MS, _KEPT_MS, _BOOT, _AHEAD_S, _LATEST, _HEADER = 0, 1, 2, 3, 4, 5, 8
_CELL_BYTES = 8
KINDS = ("requests", "tokens")
Pair = tuple[int, int]  # requests, tokens


class RateLimitAccount(NamedTuple):
    """A name with its limits of requests and tokens a minute; `None` is unlimited."""

    name: str
    limits: tuple[int | None, int | None]


class LimitHeadroom(NamedTuple):
    """The rest of one limit, and the seconds until it is full again."""

    limit: int
    remaining: int
    reset_s: int


class LimitExceeded(NamedTuple):
    """The exceeded limit and the wait in seconds; `None` if the request is above the limit."""

    account: RateLimitAccount
    kind: str
    wait_s: int | None


class RateCount(NamedTuple):
    """A counted request and its second; `rooms` has the least headroom of each kind.

    `short` are accounts whose limits have room beyond this host's parts.
    """

    second: int
    tokens: int
    rooms: tuple[LimitHeadroom | None, LimitHeadroom | None]
    over: LimitExceeded | None = None
    short: tuple[RateLimitAccount, ...] = ()


class HostRateShare(NamedTuple):
    """The host's part of one account's limits; `kept` is the part that outlasts its lease."""

    account: RateLimitAccount
    held: Pair
    kept: Pair


class RateTableFull(Exception):
    """The error for more accounts in one minute than the file has rows."""


class RateWindowTable:
    """The mapped file, one per process. `shared` is the monotonic clock of leased parts."""

    def __init__(self, path: Path, shared: Callable[[], float] | None = None) -> None:
        self._shared = shared
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = (_HEADER + _EVERY_ROW * _WIDTH) * _CELL_BYTES
        allocate_blocks(self._file, size)
        os.ftruncate(self._file, size)
        self._map = mmap.mmap(self._file, size)
        self._all: memoryview[int] = memoryview(self._map).cast("q")
        self._cells = self._all[_HEADER:]

    def close(self) -> None:
        self._cells.release()
        self._all.release()
        self._map.close()
        os.close(self._file)

    def set_clock(self, now_s: float, wall_s: int, boot: str) -> None:
        """Set the file's clock; every process that opens the file calls it before `second`.

        `now_s` is monotonic and counts from `boot`; the wall clock gives the time between two
        boots. Seconds never go back: if the wall clock is behind, a minute lasts longer.
        """
        this_boot = int.from_bytes(blake2b(boot.encode(), digest_size=7).digest(), "little")
        with self._lock_file():
            latest, cells = self._all[_LATEST], self._all
            if cells[_BOOT] == this_boot and int(now_s) + cells[_AHEAD_S] >= latest:
                return
            cells[_LEASE_MS] = cells[_KEPT_MS] = 0  # set by a clock that has restarted
            cells[_AHEAD_S] = max(wall_s, latest) - int(now_s)
            cells[_BOOT] = this_boot

    def second(self, now_s: float) -> int:
        return int(now_s) + self._all[_AHEAD_S]

    def count_request(
        self, accounts: Sequence[RateLimitAccount], tokens: int, second: int
    ) -> RateCount:
        """Count one request of `tokens` on all accounts, or on none of them."""
        names = [_hash_of(account.name) for account in accounts]
        with self._lock_file():
            rows = [self._row(name, second) for name in names]
            asked = list(zip(accounts, rows, strict=True))
            over = next(
                (exceeded for pair in asked if (exceeded := self._over(*pair, tokens))), None
            )
            if over is None:
                for row in rows:
                    self._add(row, 0, second, 1)
                    self._add(row, 1, second, tokens)
            rooms = self._headroom_of(asked, 0), self._headroom_of(asked, 1)
            return RateCount(
                second, tokens, rooms, over, self._short(asked, tokens) if over else ()
            )

    def correct(
        self, accounts: Sequence[RateLimitAccount], counted: RateCount, used: int, now: int
    ) -> None:
        """Replace the tokens counted ahead by those used.

        An excess was generated later, and counts from now, so a long answer takes its own minute.
        """
        more = used - counted.tokens
        at = now if more > 0 else counted.second
        if not more or now - at >= RING:
            return
        names = [_hash_of(account.name) for account in accounts]
        with self._lock_file():
            for name in names:
                row = self._row(name, now)
                self._add(row, 1, at, more)

    # -- parts, set by one process of the host -------------------------------------------------

    def file_id(self) -> str:
        """Return the id of this file; another file has no counts yet."""
        with self._lock_file():
            if not self._all[_FILE_ID]:
                self._all[_FILE_ID] = int.from_bytes(os.urandom(7), "little") | 1
            return f"{self._all[_FILE_ID]:014x}"

    def lease(self, until_s: float, kept_until_s: float) -> None:
        """Set the monotonic times until which parts, and then their `kept` values, are valid."""
        self._all[_KEPT_MS] = int(kept_until_s * 1000)
        self._all[_LEASE_MS] = int(until_s * 1000)

    def totals(self, names: Iterable[str], second: int) -> list[Pair]:
        """Return what was admitted of each account in the last minute."""
        with self._lock_file():
            rows = [self._row(_hash_of(name), second) for name in names]
            return [(self._cells[row + 2], self._cells[row + 3]) for row in rows]

    def set_parts(self, parts: Iterable[HostRateShare], second: int) -> None:
        with self._lock_file():
            for part in parts:
                self._set(self._row(_hash_of(part.account.name), second), part)

    def replace_parts(self, parts: Iterable[HostRateShare], second: int) -> None:
        """Set these parts and clear all others."""
        with self._lock_file():
            for row in range(0, _EVERY_ROW * _WIDTH, _WIDTH):
                for cell in (*_PARTS, *_KEPT):
                    self._cells[row + cell] = 0
        self.set_parts(parts, second)

    def lower_part(self, part: HostRateShare, wanted: Pair, second: int) -> HostRateShare:
        """Return the part lowered by what it can spare: what is wanted, or half of its room."""
        with self._lock_file():
            row = self._row(_hash_of(part.account.name), second)
            held, kept = [], []
            for kind, ask in enumerate(wanted):
                room = max(0, part.held[kind] - self._cells[row + _TOTALS[kind]])
                given = max(min(ask, room), room // 2) if ask else 0
                held.append(part.held[kind] - given)
                kept.append(min(part.kept[kind], held[kind]))
            left = HostRateShare(part.account, (held[0], held[1]), (kept[0], kept[1]))
            self._set(row, left)
            return left

    def _set(self, row: int, part: HostRateShare) -> None:
        for kind, limit in enumerate(part.account.limits):
            self._cells[row + _LIMITS[kind]] = limit or 0
            self._cells[row + _PARTS[kind]] = part.held[kind]
            self._cells[row + _KEPT[kind]] = part.kept[kind]

    def _may(self, account: RateLimitAccount, row: int, kind: int) -> int | None:
        """Return how many a minute this host may admit; `None` for no limit."""
        limit = account.limits[kind]
        if limit is None or self._shared is None:
            return limit
        if self._cells[row + _LIMITS[kind]] != limit:
            return 0  # from an earlier configuration: room of other hosts is unknown
        now_ms = self._shared() * 1000
        if now_ms < self._all[_LEASE_MS]:
            return min(limit, self._cells[row + _PARTS[kind]])
        return self._cells[row + _KEPT[kind]] if now_ms < self._all[_KEPT_MS] else 0

    def _short(
        self, asked: Sequence[tuple[RateLimitAccount, int]], tokens: int
    ) -> tuple[RateLimitAccount, ...]:
        """Return accounts short of the host's part; empty if a limit itself is reached.

        In that case no other host's part would help.
        """
        found = []
        for account, row in asked:
            for kind, more in enumerate((1, tokens)):
                may, needed = self._may(account, row, kind), self._cells[row + _TOTALS[kind]] + more
                if may is None or needed <= may:
                    continue
                limit = account.limits[kind]
                if limit is None or needed > limit:
                    return ()
                found.append(account)
        return tuple(dict.fromkeys(found))

    @contextmanager
    def _lock_file(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _row(self, name: int, second: int) -> int:
        """Return the first cell of the account's row, with its ring moved to this second."""
        cells, free = self._cells, None
        self._all[_LATEST] = max(second, self._all[_LATEST])
        first, count = (_FIRST_MADE_UP, MADE_UP_ROWS) if name < 0 else (0, ROWS)
        for probe in range(PROBES):
            row = (first + (name + probe) % count) * _WIDTH
            if cells[row + _NAME] == name:
                self._expire_seconds(row, second)
                return row
            if free is None and second - cells[row + _SECOND] >= RING:
                free = row
            if not cells[row + _NAME]:
                break
        if free is None:
            raise RateTableFull
        cells[free : free + _WIDTH] = _BLANK
        cells[free + _NAME], cells[free + _SECOND] = name, second
        return free

    def _expire_seconds(self, row: int, second: int) -> None:
        """Clear expired seconds and sum up the others.

        If a process was killed between a sum and its second, the seconds count.
        """
        cells, last = self._cells, self._cells[row + _SECOND]
        if second <= last:
            return
        for total, ring in zip(_TOTALS, _RINGS, strict=True):
            if cells[row + total]:
                begin = row + ring
                for old in range(max(last + 1, second - RING + 1), second + 1):
                    cells[begin + old % RING] = 0
                cells[row + total] = sum(cells[begin : begin + RING])
        cells[row + _SECOND] = second

    def _add(self, row: int, kind: int, second: int, count: int) -> None:
        """Add to a total and to its second; a kill in between counts too much."""
        cells = (row + _TOTALS[kind], row + _RINGS[kind] + second % RING)
        for cell in cells if count > 0 else reversed(cells):
            self._cells[cell] += count

    def _over(self, account: RateLimitAccount, row: int, tokens: int) -> LimitExceeded | None:
        for kind, more in enumerate((1, tokens)):
            may, total = self._may(account, row, kind), self._cells[row + _TOTALS[kind]]
            limit = account.limits[kind]
            if may is None or limit is None or total + more <= may:
                continue
            if more > limit:
                return LimitExceeded(account, KINDS[kind], None)
            wait_s = self._wait_s(row, kind, total + more - may)
            return LimitExceeded(
                account, KINDS[kind], wait_s if may == limit else min(wait_s, ELSEWHERE_S)
            )
        return None

    def _wait_s(self, row: int, kind: int, needed: int) -> int:
        """Return the seconds until enough of the oldest counts have expired."""
        cells, now, freed = self._cells, self._cells[row + _SECOND], 0
        for second in range(now - MINUTE_S, now + 1):
            freed += cells[row + _RINGS[kind] + second % RING]
            if freed >= needed:
                return second + RING - now
        return RING

    def _headroom_of(
        self, asked: Sequence[tuple[RateLimitAccount, int]], kind: int
    ) -> LimitHeadroom | None:
        """Return the headroom of the account that is closest to its limit."""
        found: LimitHeadroom | None = None
        for account, row in asked:
            limit, may = account.limits[kind], self._may(account, row, kind)
            if limit is None or may is None:
                continue
            left = max(0, may - self._cells[row + _TOTALS[kind]])
            if found is None or left * found.limit < found.remaining * limit:
                found = LimitHeadroom(limit, left, self._reset_s(row, kind))
        return found

    def _reset_s(self, row: int, kind: int) -> int:
        cells, now = self._cells, self._cells[row + _SECOND]
        for second in range(now, now - RING, -1):
            if cells[row + _RINGS[kind] + second % RING]:
                return second + RING - now
        return 0


_BLANK = memoryview(bytes(_WIDTH * _CELL_BYTES)).cast("q")


@functools.lru_cache(maxsize=ROWS)
def _hash_of(name: str) -> int:
    """Return the hash of a name: never 0, which marks an unused row.

    It is negative for a model behind `provider/*`, as clients make up such names.
    """
    digest = blake2b(name.encode(), digest_size=8).digest()
    found = int.from_bytes(digest, "little") >> 1 or 1
    return -found if name.startswith("model:") and "/" in name else found
