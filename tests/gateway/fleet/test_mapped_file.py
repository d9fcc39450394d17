"""A shared file: made, grown, and never cut under a process that maps more of it."""

import mmap

from gateway.fleet.mapped_file import map_file


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
