"""Forecast of what the prompt caches of providers hold, learned from the prompts sent.

There is one table per host. Prompts are identified by the marks of `prefix_index`. Each mark is
stored with the time until which the provider keeps it. A mark has one cell, which later marks
overwrite, so the longest prefix whose last mark is still there counts.

A mark shows that a prompt was read, not that it is still cached: `CachedShare` learns the share
that is charged as cached.
"""

from mmap import mmap
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from gateway.fleet.mapped_file import map_file
from gateway.fleet.prefix_index import HOUR_S, tokens_of
from ledger.journals.records import TokenCounts
from ledger.prices.prompt_caches import PromptCacheRule
from ledger.prices.quotes import PriceQuote
from router.cached_share import CachedShare
from router.prompts import PromptPrefix
from router.types import RoutingRequest

PROVIDER_CACHES_FILE = "provider-caches"  # in the run directory
PLACES: Final = 1 << 18  # enough for 2,000 long conversations
PROBES: Final = 8  # of the first marks; if none is found, the prompt was sent elsewhere
_CELL_BYTES: Final = 4
_MASK: Final = (1 << 32) - 1
_PAST: Final = 1 << 31  # with wrap-around, a time this far ahead has passed
_TURN: Final = 0x9E3779B1  # odd golden-ratio constant: separates the marks of different targets


class CachedPrompt(NamedTuple):
    """Prompt tokens that a provider may have cached, and how many of them to count on.

    `written` are the tokens that will be charged as a cache write.
    """

    readable: int = 0
    expected: int = 0
    written: int = 0

    def split(self, tokens: TokenCounts, *, for_an_hour: bool) -> TokenCounts:
        """Return the expected usage with the prompt split into plain, cached and written tokens."""
        plain = tokens.input - self.expected - self.written
        short, long = (0, self.written) if for_an_hour else (self.written, 0)
        return TokenCounts(plain, self.expected, short, long, tokens.output)


NOTHING_CACHED: Final = CachedPrompt()


class ProviderCaches:
    """Mapped table of marks; private memory without a path. Times are monotonic seconds."""

    def __init__(self, path: Path | None) -> None:
        size = 2 * PLACES * _CELL_BYTES
        self._map = mmap(-1, size) if path is None else map_file(path, size)
        self._cells: memoryview[int] = memoryview(self._map).cast("I")
        self._turns: dict[str, int] = {}

    def close(self) -> None:
        self._cells.release()
        self._map.close()

    def record_read(
        self, target: str, prefix: PromptPrefix, rule: PromptCacheRule, now_s: float
    ) -> None:
        """Record that the target read this prompt and keeps it as its rule or marks say."""
        if rule.marked and not prefix.kept_s:
            return
        turn, cells = self._turn(target), self._cells
        until = int(now_s + (prefix.kept_s if rule.marked else rule.ttl_s)) & _MASK
        for mark in prefix.marks:
            cell = mark ^ turn
            place = cell % PLACES
            cells[PLACES + place] = until
            cells[place] = cell

    def count_known(self, target: str, prefix: PromptPrefix, now_s: float) -> int:
        """Return how many leading pieces of the prompt were read there and may still be cached."""
        turn, cells, now = self._turn(target), self._cells, int(now_s)
        marks = prefix.marks
        for mark in marks[:PROBES]:
            cell = mark ^ turn
            if cells[cell % PLACES] == cell:
                break
        else:
            return 0
        for pieces in range(len(marks), 0, -1):
            cell = marks[pieces - 1] ^ turn
            place = cell % PLACES
            if cells[place] == cell and (cells[PLACES + place] - now) & _MASK < _PAST:
                return pieces
        return 0

    def _turn(self, target: str) -> int:
        turn = self._turns.get(target)
        if turn is None:
            turn = self._turns[target] = crc32(target.encode()) * _TURN & _MASK
        return turn


class CacheForecast(NamedTuple):
    """Forecast of cached prompts: what was sent to providers, and the share that they cached."""

    caches: ProviderCaches
    shares: CachedShare

    def prompt_at(
        self,
        target: str,
        quote: PriceQuote,
        request: RoutingRequest,
        now_s: float,
        *,
        sent: str = "",
    ) -> CachedPrompt:
        """Return the part of the prompt that the target is expected to charge as cached.

        `sent` is the name under which prompts were recorded, if it is not the target's own.
        """
        prefix, rule = request.beginning, quote.cache_rule
        tokens = request.prompt_tokens
        if rule is None or tokens < rule.least_tokens or (rule.marked and not prefix.kept_s):
            return NOTHING_CACHED
        pieces = self.caches.count_known(sent or target, prefix, now_s)
        readable = rule.readable(tokens_of(prefix, pieces, tokens)) if pieces else 0
        expected = 0
        if readable:
            share = self.shares.share(target, promised=rule.promised)
            expected = min(int(share * readable), tokens)
        written = 0
        if rule.marked and quote.charges_writes:
            written = tokens - expected
        return CachedPrompt(readable, expected, written)


def is_for_an_hour(prefix: PromptPrefix) -> bool:
    """Return whether cache writes are charged at the rate for one hour."""
    return prefix.kept_s >= HOUR_S
