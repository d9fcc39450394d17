"""Memory for answers: whole or not found, the oldest goes first, and other processes read it."""

import os
import subprocess
import sys
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.request.cache import answer_memory
from gateway.request.cache.answer_memory import AnswerMemory, layout_of, make_memory

TOTAL = 256 * 1024
READER = f"""
import sys
from gateway.request.cache.answer_memory import AnswerMemory
descriptor, worker = int(sys.argv[1]), int(sys.argv[2])
memory = AnswerMemory(descriptor, {TOTAL}, 2, worker)
digest = bytes.fromhex(sys.argv[3])
found = memory.find(digest)
print("none" if found is None else found.data.decode(), flush=True)
memory.store(bytes(reversed(digest)), 7, b"from another process")
"""


def digest_of(name: object) -> bytes:
    return sha256(str(name).encode()).digest()


@pytest.fixture
def memory():
    made = AnswerMemory(None, TOTAL, 1, 0)
    yield made
    made.close()


def test_what_is_stored_is_found_and_nothing_else(memory) -> None:
    assert memory.store(digest_of("a"), 5, b"answer")
    assert memory.find(digest_of("a")) == (5, b"answer")
    assert memory.find(digest_of("b")) is None
    memory.store(digest_of("a"), 6, b"newer")
    assert memory.find(digest_of("a")) == (6, b"newer")


def test_another_process_reads_and_writes_its_own_part() -> None:
    descriptor = make_memory(TOTAL, 2)
    memory = AnswerMemory(descriptor, TOTAL, 2, 0)
    memory.store(digest_of("a"), 5, b"answer")
    argv = [sys.executable, "-c", READER, str(descriptor), "1", digest_of("a").hex()]
    ran = subprocess.run(
        argv, pass_fds=(descriptor,), capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "answer"
    found = memory.find(bytes(reversed(digest_of("a"))))
    assert found == (7, b"from another process")
    memory.close()
    os.close(descriptor)


def test_of_two_workers_entries_the_newest_counts() -> None:
    descriptor = make_memory(TOTAL, 2)
    views = [AnswerMemory(descriptor, TOTAL, 2, worker) for worker in range(2)]
    views[1].store(digest_of("a"), 9, b"second")
    views[0].store(digest_of("a"), 8, b"first")
    assert [view.find(digest_of("a")) for view in views] == [(9, b"second")] * 2
    for view in views:
        view.close()
    os.close(descriptor)


def test_it_takes_no_more_than_its_bytes_and_forgets_the_oldest(memory) -> None:
    layout = layout_of(TOTAL, 1)
    assert layout.part_bytes <= TOTAL
    assert not memory.store(digest_of("huge"), 1, bytes(layout.ring_bytes))
    data = bytes(10_000)
    for number in range(100):
        assert memory.store(digest_of(number), number, data)
    kept = [number for number in range(100) if memory.find(digest_of(number)) is not None]
    assert kept[-1] == 99
    assert kept == list(range(kept[0], 100))  # entries of one size leave in their order
    assert len(kept) * len(data) <= layout.ring_bytes
    assert memory.used_bytes <= layout.ring_bytes


def test_an_entry_whose_bytes_changed_is_not_found(memory, monkeypatch) -> None:
    """The checksum alone tells: with one that says yes to everything, the damage is read."""
    memory.store(digest_of("a"), 5, b"answer")
    at = bytes(memory._map).index(b"answer")
    memory._map[at : at + 6] = b"others"
    assert memory.find(digest_of("a")) is None
    checks = len(answer_memory._check(b"", 0, b""))
    said = bytes(memory._map[at - checks : at])
    monkeypatch.setattr(answer_memory, "_check", lambda *_: said)
    assert memory.find(digest_of("a")) == (5, b"others")


def test_an_entry_that_is_being_overwritten_is_not_found(memory) -> None:
    """The writer moves its cursor before it touches the bytes of the oldest entry."""
    memory.store(digest_of("a"), 5, b"answer")
    ring = layout_of(TOTAL, 1).ring_bytes
    answer_memory._CURSOR.pack_into(memory._map, 0, ring)
    assert memory.find(digest_of("a")) is not None
    answer_memory._CURSOR.pack_into(memory._map, 0, ring + 1)
    assert memory.find(digest_of("a")) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20_000)), max_size=80))
def test_any_sequence_finds_the_last_that_was_stored_or_nothing(stores) -> None:
    memory = AnswerMemory(None, TOTAL, 1, 0)
    last: dict[int, bytes] = {}
    for turn, (number, size) in enumerate(stores):
        data = b"%d:%d;" % (number, turn) + bytes(size)
        memory.store(digest_of(number), turn, data)
        last[number] = data
        found = memory.find(digest_of(number))
        assert found is not None
        assert found.data == data
    for number, data in last.items():
        found = memory.find(digest_of(number))
        assert found is None or found.data == data
    memory.close()
