"""Frames in mapped memory: read back from the file at any instant, and never a wrong one."""

import errno
import os
import random
from pathlib import Path

import pytest

from ledger.journals import pending as module
from ledger.journals.layout import HEAD_BYTES, encode_head
from ledger.journals.pending import (
    GROUP_BYTES,
    HALF_BYTES,
    PENDING_FILE,
    ROOM_BYTES,
    PendingFrames,
    PendingGroup,
    read_groups,
)


def frame(number: int, size: int = 100) -> bytes:
    payload = bytes([number % 251]) * size
    return encode_head(payload, number, 7) + payload


def put(pending: PendingFrames, data: bytes) -> None:
    """As the writing side does."""
    end = pending.end + len(data)
    pending.memory[pending.end : end] = data
    pending.end, pending.size = end, pending.size + len(data)


@pytest.fixture
def pending(tmp_path: Path):
    made = PendingFrames.make(tmp_path)
    assert made is not None
    yield made
    made.close(is_drained=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / PENDING_FILE


@pytest.mark.parametrize("is_dead", [True, False])
def test_what_is_put_is_read_at_once(pending, path, is_dead) -> None:
    assert read_groups(path, is_dead=is_dead) == []
    pending.begin_group(3, 4096, 11)
    frames = b""
    for number in range(11, 31):
        frames += frame(number, size=number * 40)
        put(pending, frame(number, size=number * 40))
        assert read_groups(path, is_dead=is_dead) == [PendingGroup(3, 4096, 11, frames)]
    group = pending.take_group()
    assert (group.segment, group.offset, bytes(group.data)) == (3, 4096, frames)
    pending.begin_group(3, 4096 + len(frames), 31)
    put(pending, frame(31))
    both = [
        PendingGroup(3, 4096, 11, frames),
        PendingGroup(3, 4096 + len(frames), 31, frame(31)),
    ]
    assert read_groups(path, is_dead=is_dead) == both
    group.data.release()


@pytest.mark.parametrize("is_dead", [True, False])
def test_what_older_turns_left_is_none_of_a_group(pending, path, is_dead) -> None:
    dice, number, offset = random.Random(5), 1, 4096
    for _ in range(40):
        frames, first = b"", number
        pending.begin_group(1, offset, first)
        for _ in range(dice.randrange(1, 30)):
            data = frame(number, size=dice.randrange(400))
            put(pending, data)
            frames, number = frames + data, number + 1
        assert PendingGroup(1, offset, first, frames) in read_groups(path, is_dead=is_dead)
        pending.take_group().data.release()
        offset += len(frames)


@pytest.mark.parametrize("is_dead", [True, False])
def test_much_that_is_pending_is_read_whole(pending, path, is_dead) -> None:
    pending.begin_group(1, 4096, 1)
    number, frames = 1, b""
    while (data := frame(number, size=9_000)) and len(data) <= pending.room_bytes:
        put(pending, data)
        frames, number = frames + data, number + 1
    assert len(frames) > ROOM_BYTES - 10_000
    assert read_groups(path, is_dead=is_dead) == [PendingGroup(1, 4096, 1, frames)]


def test_damage_ends_what_is_read_of_the_living_and_shows_of_the_dead(pending, path) -> None:
    pending.begin_group(1, 4096, 1)
    frames = b"".join(frame(number) for number in range(1, 6))
    for number in range(1, 6):
        put(pending, frame(number))
    size = len(frame(1))
    with path.open("r+b") as file:
        file.seek(GROUP_BYTES + 2 * size + HEAD_BYTES + 5)
        file.write(b"?")
    (living,) = read_groups(path, is_dead=False)
    (dead,) = read_groups(path, is_dead=True)
    assert living.data == frames[: 2 * size]
    assert len(dead.data) == len(frames)
    assert dead.data[3 * size :] == frames[3 * size :]


def test_a_damaged_head_hides_its_group_alone(pending, path) -> None:
    for number in (1, 2):
        pending.begin_group(1, 4096 * number, number)
        put(pending, frame(number))
        pending.take_group().data.release()
    for bit in range(0, 8 * 36, 7):
        data = bytearray(path.read_bytes()[:GROUP_BYTES])
        data[bit // 8] ^= 1 << bit % 8
        with path.open("r+b") as file:
            before = file.read(GROUP_BYTES)
            file.seek(0)
            file.write(data)
        assert read_groups(path, is_dead=True) == [PendingGroup(1, 8192, 2, frame(2))], bit
        with path.open("r+b") as file:
            file.write(before)


def test_no_memory_is_mapped_where_a_full_disk_could_take_it_away(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "writes_in_place", lambda _file: False)
    assert PendingFrames.make(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_has_no_memory(tmp_path, monkeypatch) -> None:
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert PendingFrames.make(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_its_blocks_before_it_is_mapped(pending, path) -> None:
    assert path.stat().st_blocks * 512 >= 2 * HALF_BYTES


def test_what_is_drained_gives_its_blocks_back(tmp_path) -> None:
    pending = PendingFrames.make(tmp_path)
    assert pending is not None
    pending.close(is_drained=True)
    assert (tmp_path / PENDING_FILE).stat().st_size == 0
    assert read_groups(tmp_path / PENDING_FILE, is_dead=True) == []
    assert read_groups(tmp_path / "nowhere", is_dead=True) == []
