"""A secret is made once, for its owner alone."""

from ledger.identity.secretfile import BYTES, read_or_create_secret, read_secret


def test_it_is_made_once_for_its_owner(tmp_path) -> None:
    path = tmp_path / "state" / "key"
    first = read_or_create_secret(path)
    assert len(first) == BYTES
    assert read_or_create_secret(path) == first == read_secret(path)
    assert path.stat().st_mode & 0o077 == 0
    assert [named.name for named in path.parent.iterdir()] == ["key"]


def test_the_first_of_two_that_make_it_wins(tmp_path) -> None:
    path = tmp_path / "key"

    def late(_: int) -> bytes:
        path.write_bytes(b"1" * BYTES)
        return b"2" * BYTES

    assert read_or_create_secret(path, late) == b"1" * BYTES


def test_what_is_not_there_or_short_is_no_secret(tmp_path) -> None:
    assert read_secret(tmp_path / "none") is None
    (tmp_path / "short").write_bytes(b"x" * (BYTES - 1))
    assert read_secret(tmp_path / "short") is None
