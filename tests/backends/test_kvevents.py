"""vLLM's KV events: as recorded from a real one, and what follows from them."""

from pathlib import Path

import msgspec
import pytest

from backends.kvevents import LIMIT_BLOCKS, KvEventError, PrefixMemory

PAGE = Path(__file__).parent / "pages" / "kv-events-vllm-0.32.0.msgpack"


def message(number: int, *events: object) -> list[bytes]:
    """As vLLM says it: tagged maps, with members that are not read."""
    return [b"", number.to_bytes(8, "big"), msgspec.msgpack.encode([1.0, list(events), 0])]


def stored(*hashes: object, **members: object) -> dict[str, object]:
    return {
        "type": "BlockStored", "block_hashes": list(hashes), "parent_block_hash": None,
        "token_ids": [1, 2], "block_size": 2, "lora_id": None, "medium": "GPU", **members,
    }  # fmt: skip


def removed(*hashes: object, **members: object) -> dict[str, object]:
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU", **members}


@pytest.fixture
def memory() -> PrefixMemory:
    return PrefixMemory()


def test_a_real_engines_events_are_read(memory: PrefixMemory) -> None:
    """Three prompts in a cache for two, then `reset_prefix_cache`."""
    reach = []
    for place, payload in enumerate(msgspec.msgpack.decode(PAGE.read_bytes(), type=list[bytes])):
        memory.fold([b"", place.to_bytes(8, "big"), payload], 100.0 + place)
        reach.append((memory.forgotten_s, memory.blocks))
    assert 0 < max(blocks for _, blocks in reach) <= 7, "as many as the cache has"
    assert any(0.0 < forgotten_s < 100.0 + place for place, (forgotten_s, _) in enumerate(reach))
    assert reach[-1] == (100.0 + len(reach) - 1, 0), "cleared at last"
    assert [forgotten_s for forgotten_s, _ in reach] == sorted(each for each, _ in reach)


def test_what_was_removed_was_the_oldest(memory: PrefixMemory) -> None:
    memory.fold(message(0, stored(b"a", b"b")), 10.0)
    memory.fold(message(1, stored(b"c")), 20.0)
    assert (memory.forgotten_s, memory.blocks) == (0.0, 3)
    memory.fold(message(2, removed(b"b")), 30.0)
    assert (memory.forgotten_s, memory.blocks) == (10.0, 2)
    memory.fold(message(3, removed(b"c"), removed(b"a")), 31.0)
    assert (memory.forgotten_s, memory.blocks) == (20.0, 0)


def test_what_was_stored_again_is_as_new(memory: PrefixMemory) -> None:
    memory.fold(message(0, stored(1)), 10.0)
    memory.fold(message(1, stored(1)), 50.0)
    memory.fold(message(2, removed(1)), 60.0)
    assert memory.forgotten_s == 50.0


@pytest.mark.parametrize(
    "events",
    [
        (removed(b"never seen"),),
        (stored(b"a", medium="CPU"), removed(b"a", medium="CPU")),
        (stored(b"a", kv_cache_spec_sliding_window=128), removed(b"a")),
        (stored(b"a", group_idx=0), removed(b"a", group_idx=1)),
    ],
    ids=["stored before we listened", "on another medium", "of a window", "another group's"],
)
def test_what_says_nothing_of_the_prefix_cache(memory: PrefixMemory, events) -> None:
    memory.fold(message(0, *events), 10.0)
    assert memory.forgotten_s == 0.0


def test_lost_batches_are_counted_and_another_life_has_nothing(memory: PrefixMemory) -> None:
    memory.fold(message(5, stored(b"a")), 10.0)
    memory.fold(message(8, stored(b"b")), 11.0)
    assert (memory.missed, memory.forgotten_s, memory.blocks) == (2, 0.0, 2)
    memory.fold(message(0, stored(b"c")), 12.0)
    assert (memory.missed, memory.forgotten_s, memory.blocks) == (2, 12.0, 1)


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"", b"\0" * 8],
        [b"", b"\0" * 7, b"\x93"],
        [b"", b"\0" * 8, b"\xc1"],
        [b"", b"\0" * 8, msgspec.msgpack.encode([1.0, [{"type": "Unheard"}]])],
        [b"", b"\0" * 8, msgspec.msgpack.encode([1.0, [stored("text")]])],
        [b"", b"\0" * 8, b"\x91" * 5000],
    ],
)
def test_what_is_no_batch_changes_nothing(memory: PrefixMemory, frames) -> None:
    with pytest.raises(KvEventError):
        memory.fold(frames, 10.0)
    assert (memory.forgotten_s, memory.blocks, memory.missed) == (0.0, 0, 0)


def test_no_more_is_remembered_than_the_limit(memory: PrefixMemory) -> None:
    memory.fold(message(0, stored(*range(LIMIT_BLOCKS))), 10.0)
    memory.fold(message(1, stored(*range(LIMIT_BLOCKS, LIMIT_BLOCKS + 10))), 20.0)
    assert memory.blocks == LIMIT_BLOCKS
    memory.fold(message(2, removed(*range(10))), 30.0)
    assert memory.forgotten_s == 0.0, "the oldest are not known any more"
