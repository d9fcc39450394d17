"""vLLM's KV events: changes of an engine's prefix cache, parsed and kept.

Each batch is `[time, [event, ...], rank]` in MessagePack, after a topic and a number that counts
from 0 in each run of the engine. Blocks are identified by hashes of tokens, which cannot be
computed without the tokenizer. The events do show the age of evicted blocks: the cache evicts the
least recently used first, so hardly anything last requested before the storing time of an evicted
block is left (`forgotten_s`). Tokens of prompts in the events are never decoded.
"""

from collections.abc import Sequence

import msgspec

LIMIT_BLOCKS = 1 << 18  # remembered of one engine: four million tokens in blocks of 16
_NUMBER_BYTES = 8
_HERE = (None, "GPU")  # blocks on other media come back without being computed
_Hash = bytes | int
_Key = tuple[int, _Hash]


class BlockStored(msgspec.Struct, tag=True, gc=False):
    block_hashes: list[_Hash]
    medium: str | None = None
    group_idx: int | None = None
    kv_cache_spec_sliding_window: int | None = None


class BlockRemoved(msgspec.Struct, tag=True, gc=False):
    block_hashes: list[_Hash]
    medium: str | None = None
    group_idx: int | None = None


class AllBlocksCleared(msgspec.Struct, tag=True, gc=False):
    pass


class _Batch(msgspec.Struct, array_like=True, gc=False):
    ts: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]


class KvEventError(Exception):
    """A message that is not a batch of KV events, or of another version."""


_decode = msgspec.msgpack.Decoder(_Batch).decode


class PrefixMemory:
    """One engine's cache according to its events, in the receiver's monotonic seconds.

    `forgotten_s`: what was last requested before is not in the cache (0: nothing is known to be
    evicted). `missed` counts lost batches; blocks not known to be evicted are assumed to be
    present.
    """

    __slots__ = ("_next", "_stored_s", "forgotten_s", "missed")

    def __init__(self) -> None:
        self.forgotten_s = 0.0
        self.missed = 0
        self._stored_s: dict[_Key, float] = {}
        self._next: int | None = None

    @property
    def has_heard(self) -> bool:
        """Return whether any event of the engine was received."""
        return self._next is not None

    @property
    def blocks(self) -> int:
        """Return the number of blocks that are known to be in the cache."""
        return len(self._stored_s)

    def clear(self, now_s: float) -> None:
        """Record that the cache is empty, as after a start."""
        self._stored_s.clear()
        self.forgotten_s = now_s

    def fold(self, frames: Sequence[bytes], now_s: float) -> None:
        """Apply a message: topic, number, batch. Raises `KvEventError` and changes nothing."""
        if len(frames) != 3 or len(frames[1]) != _NUMBER_BYTES:
            raise KvEventError(f"{len(frames)} frames")
        try:
            batch = _decode(frames[2])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise KvEventError(str(error)) from error
        number = int.from_bytes(frames[1], "big")
        if self._next is not None:
            if number < self._next:  # another life counts anew
                self.clear(now_s)
            else:
                self.missed += number - self._next
        self._next = number + 1
        for event in batch.events:
            self._apply_event(event, now_s)

    def _apply_event(
        self, event: BlockStored | BlockRemoved | AllBlocksCleared, now_s: float
    ) -> None:
        if isinstance(event, AllBlocksCleared):
            self.clear(now_s)
            return
        if event.medium not in _HERE:
            return
        group, known = event.group_idx or 0, self._stored_s
        if isinstance(event, BlockRemoved):
            for block_hash_ in event.block_hashes:
                self.forgotten_s = max(self.forgotten_s, known.pop((group, block_hash_), 0.0))
        elif event.kv_cache_spec_sliding_window is None:  # a window drops blocks that are in use
            for block_hash_ in event.block_hashes:
                known.pop((group, block_hash_), None)  # stored again, it is the newest
                known[group, block_hash_] = now_s
            while len(known) > LIMIT_BLOCKS:
                del known[next(iter(known))]
