"""A shared file: made, grown, and never cut under a process that maps more of it."""

import errno
import mmap
import os

import pytest

from gateway.fleet.mapped_file import map_file
from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.limits.rate_table import RateWindowTable
from gateway.table_layout import TableLayout


def test_a_file_is_private_grown_and_never_cut(tmp_path) -> None:
    """Red before: a table of fewer rows cut the file, and a worker of more rows died by SIGBUS."""
    path = tmp_path / "shared"
    with map_file(path, 2 * mmap.PAGESIZE) as large:
        large[-1] = 7
        with map_file(path, mmap.PAGESIZE) as small:
            small[0] = 5
        assert (large[0], large[-1]) == (5, 7)
        with map_file(path, 3 * mmap.PAGESIZE) as larger:
            assert (larger[0], larger[2 * mmap.PAGESIZE - 1], larger[-1]) == (5, 7, 0)
    assert path.stat().st_size == 3 * mmap.PAGESIZE
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("table", ["mapped", "load", "prefixes", "rates"])
def test_every_byte_of_a_table_has_a_block(tmp_path, table) -> None:
    """Red before: a first store into a hole of a full disk ended the process by SIGBUS."""
    path, load = tmp_path / "table", SharedLoadTable(tmp_path / "load", TableLayout(2, ("e",), ()))
    made = {
        "mapped": lambda: map_file(path, 20 * mmap.PAGESIZE),
        "load": lambda: SharedLoadTable(path, TableLayout(2, ("e", "f"), ())),
        "prefixes": lambda: PrefixIndex(path, load),
        "rates": lambda: RateWindowTable(path),
    }[table]()
    found = path.stat()
    assert found.st_blocks * 512 >= found.st_size > 0
    made.close()
    load.close()


def test_a_full_disk_refuses_a_table(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        map_file(tmp_path / "table", mmap.PAGESIZE)
