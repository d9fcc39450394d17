"""Blocks are counted exactly, shared while they are held, and evicted oldest first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.simulator.kv import BlockPool


def test_one_block_is_reserved():
    assert BlockPool(blocks=24, block_tokens=16).capacity == 23
    with pytest.raises(ValueError, match="at least 2 blocks"):
        BlockPool(blocks=1, block_tokens=16)


def test_shared_blocks_count_once():
    pool = BlockPool(blocks=11, block_tokens=16)
    assert pool.acquire((1, 2), 3) == 0
    pool.publish((1, 2))
    assert pool.acquire((1, 2), 3) == 2
    assert pool.used == 4


def test_what_does_not_fit_takes_nothing():
    pool = BlockPool(blocks=5, block_tokens=16)
    assert pool.acquire((), 3) == 0
    assert pool.acquire((), 2) is None
    assert pool.acquire((), 1, spare=1) is None
    assert pool.free == 1


def test_released_blocks_stay_cached_until_space_is_needed_tail_first():
    pool = BlockPool(blocks=5, block_tokens=16)
    pool.acquire((1, 2, 3), 3)
    shared = pool.publish((1, 2, 3))
    pool.release(shared, 0)
    assert (pool.free, pool.cached) == (4, 3)
    pool.grow(2)  # one block was never used; one cached block goes: the prompt's last
    assert pool.hits((1, 2, 3)) == 2
    pool.grow(2)
    assert pool.hits((1, 2, 3)) == 0


def test_a_block_computed_twice_stays_private():
    pool = BlockPool(blocks=11, block_tokens=16)
    pool.acquire((1,), 1)
    pool.acquire((1,), 1)  # before the first one was offered
    assert pool.publish((1,)) == [1]
    assert pool.publish((1,)) == []
    assert pool.used == 2


def test_without_caching_nothing_hits():
    pool = BlockPool(blocks=11, block_tokens=16, caching=False)
    pool.acquire((1,), 1)
    assert pool.publish((1,)) == []
    assert pool.acquire((1,), 1) == 0
    assert pool.used == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), max_size=60))
def test_used_and_free_always_add_up(steps):
    pool = BlockPool(blocks=21, block_tokens=16)
    held = []
    for head, total in steps:
        hashes = tuple(head * 10 + i for i in range(total))
        hits = pool.acquire(hashes, total)
        if hits is None:
            if held:
                shared, size = held.pop(0)
                pool.release(shared, size - len(shared))
            continue
        shared = list(hashes[:hits]) + pool.publish(hashes[hits:])
        held.append((shared, total))
        assert pool.used + pool.free == pool.capacity
        assert pool.used + pool.cached <= pool.capacity
    for shared, size in held:
        pool.release(shared, size - len(shared))
    assert pool.used == 0
