"""Block-accurate KV cache of the simulated engine: shared prompt blocks and private ones.

Blocks hold a fixed number of tokens and one of them is reserved, as vLLM does, so that
`(blocks - 1) * block_tokens` tokens fit. Full prompt blocks are known by hash and shared between
sequences; when nobody holds them they stay cached until the space is needed, least recently
released first, a prompt's tail before its head. All other blocks are private. Only prompt blocks
are cached: blocks filled by generated tokens are not offered for reuse.
"""

from collections import OrderedDict
from collections.abc import Sequence


class BlockPool:
    """Counts blocks; `acquire` and `grow` succeed only if `free` covers them."""

    def __init__(self, *, blocks: int, block_tokens: int, caching: bool = True) -> None:
        if blocks < 2 or block_tokens < 1:
            raise ValueError("a pool needs at least 2 blocks of at least 1 token")
        self.block_tokens = block_tokens
        self.capacity = blocks - 1
        self._caching = caching
        self._private = 0
        self._held: dict[int, int] = {}  # hash -> holders
        # Hashes, least recently released first: a plain dict is slow to lose its first ones.
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def used(self) -> int:
        return self._private + len(self._held)

    @property
    def free(self) -> int:
        """Return blocks nobody holds, cached ones included."""
        return self.capacity - self.used

    @property
    def cached(self) -> int:
        """Return blocks nobody holds that a prompt could still hit."""
        return len(self._idle)

    def hits(self, hashes: Sequence[int]) -> int:
        """Return how many leading blocks are in the cache, held or idle."""
        if not self._caching:
            return 0
        count = 0
        for block in hashes:
            if block not in self._held and block not in self._idle:
                break
            count += 1
        return count

    def acquire(self, hashes: Sequence[int], total: int, *, spare: int = 0) -> int | None:
        """Take `total` blocks, sharing the leading cached ones; returns how many those are.

        `None` when they do not fit beside `spare` further blocks.
        """
        hit = self.hits(hashes)
        resident = sum(1 for block in hashes[:hit] if block in self._held)
        if total - resident + spare > self.free:
            return None
        for block in hashes[:hit]:
            self._idle.pop(block, None)
            self._held[block] = self._held.get(block, 0) + 1
        self._private += total - hit
        self._evict()
        return hit

    def publish(self, hashes: Sequence[int]) -> list[int]:
        """Offer a holder's private, computed blocks for reuse; returns those it now shares.

        A hash that is cached already was computed a second time: that block stays private.
        """
        if not self._caching:
            return []
        fresh = [b for b in hashes if b not in self._held and b not in self._idle]
        for block in fresh:
            self._held[block] = 1
        self._private -= len(fresh)
        return fresh

    def grow(self, blocks: int) -> None:
        """Take private blocks; the caller has seen that they are free."""
        if blocks:
            self._private += blocks
            self._evict()

    def release(self, shared: Sequence[int], private: int) -> None:
        """Give a holder's blocks back; its shared ones stay cached."""
        self._private -= private
        for block in reversed(shared):
            holders = self._held[block] - 1
            if holders:
                self._held[block] = holders
            else:
                del self._held[block]
                self._idle[block] = None

    def forget(self) -> None:
        """Drop every cached block that nobody holds."""
        self._idle.clear()

    def _evict(self) -> None:
        surplus = self.used + len(self._idle) - self.capacity
        for _ in range(surplus):
            self._idle.popitem(last=False)
