"""Room kept for the ends of attempts: as much as there is, and never less than they need."""

import errno
import os

import pytest

from ledger.journals import reserve as module
from ledger.journals.reserve import DiskReserve


@pytest.fixture
def disk(monkeypatch):
    """Set `disk["room"]`: allocating more than that fails as on a full disk."""
    state, real = {"room": 10**9}, os.posix_fallocate

    def fallocate(file, start, size):
        if size > state["room"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, start, size)

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    return state


@pytest.mark.parametrize(
    ("room", "ends", "kept"),
    [
        (10**9, 1, module.MOST_BYTES),
        (module.MOST_BYTES - 1, 1, module.MOST_BYTES // 4),
        (module.LEAST_BYTES, 1, module.LEAST_BYTES),
        (module.LEAST_BYTES - 1, 1, None),
        (module.LEAST_BYTES, 65, None),
        (10**9, 10**6, module.MOST_BYTES),
    ],
)
def test_what_is_kept_by_the_room_there_is(tmp_path, disk, room, ends, kept):
    disk["room"] = room
    reserve = DiskReserve(tmp_path / "reserve")
    if kept is None:
        with pytest.raises(OSError, match="No space left"):
            reserve.keep(ends)
    else:
        reserve.keep(ends)
    assert reserve.kept_bytes == (kept or 0) == (tmp_path / "reserve").stat().st_size
    reserve.close()


def test_it_grows_before_it_is_too_small_and_is_given_up_whole(tmp_path, disk):
    disk["room"] = module.LEAST_BYTES
    reserve = DiskReserve(tmp_path / "reserve")
    reserve.keep(1)
    disk["room"] = 10**9
    reserve.keep(1)
    assert reserve.kept_bytes == module.LEAST_BYTES
    reserve.keep(65)
    assert reserve.kept_bytes == module.MOST_BYTES
    reserve.release()
    assert reserve.kept_bytes == 0 == (tmp_path / "reserve").stat().st_size
    reserve.close()


def test_a_probe_takes_nothing_for_good(tmp_path, disk):
    reserve = DiskReserve(tmp_path / "reserve")
    reserve.keep(1)
    reserve.probe()
    disk["room"] = module.MOST_BYTES
    with pytest.raises(OSError, match="No space left"):
        reserve.probe()
    assert (tmp_path / "reserve").stat().st_size == module.MOST_BYTES
    reserve.close()
