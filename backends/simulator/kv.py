"""Block-accurate KV cache of the simulated engine: shared prompt blocks and private ones.

Blocks hold a fixed number of tokens and one is reserved, as in vLLM, so `(blocks - 1) *
block_tokens` tokens fit. Full prompt blocks are identified by hash and shared. Unused ones stay
cached until space is needed and are evicted least recently released first, a prompt's tail before
its head. All other blocks are private: blocks of generated tokens are not reused.
"""

from collections import OrderedDict
from collections.abc import Sequence


class BlockPool:
    """A pool of block counts; `acquire` and `grow` succeed only if `free` covers them."""

    def __init__(self, *, blocks: int, block_tokens: int, caching: bool = True) -> None:
        if blocks < 2 or block_tokens < 1:
            raise ValueError("a pool needs at least 2 blocks of at least 1 token")
        self.block_tokens = block_tokens
        self.capacity = blocks - 1
        self._caching = caching
        self._private = 0
        self._held: dict[int, int] = {}  # hash -> holders
        # Hashes, least recently released first: removing the first keys of a plain dict is slow.
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def used(self) -> int:
        return self._private + len(self._held)

    @property
    def free(self) -> int:
        """Return the number of blocks without a holder, cached ones included."""
        return self.capacity - self.used

    @property
    def cached(self) -> int:
        """Return the number of blocks without a holder that a prompt could still hit."""
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
        """Take `total` blocks, sharing leading cached ones. Return the number of shared ones.

        Returns `None` if they do not fit in addition to `spare` further blocks.
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
        """Offer a holder's private, computed blocks for reuse. Return those that are now shared.

        A block whose hash is cached already was computed twice, and stays private.
        """
        if not self._caching:
            return []
        fresh = [b for b in hashes if b not in self._held and b not in self._idle]
        for block in fresh:
            self._held[block] = 1
        self._private -= len(fresh)
        return fresh

    def grow(self, blocks: int) -> None:
        """Take private blocks; the caller has checked that they are free."""
        if blocks:
            self._private += blocks
            self._evict()

    def release(self, shared: Sequence[int], private: int) -> None:
        """Release a holder's blocks; its shared ones stay cached."""
        self._private -= private
        for block in reversed(shared):
            holders = self._held[block] - 1
            if holders:
                self._held[block] = holders
            else:
                del self._held[block]
                self._idle[block] = None

    def forget(self) -> None:
        """Drop every cached block without a holder."""
        self._idle.clear()

    def _evict(self) -> None:
        surplus = self.used + len(self._idle) - self.capacity
        for _ in range(surplus):
            self._idle.popitem(last=False)
