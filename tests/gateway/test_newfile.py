"""A file is there whole or not at all, and none is replaced unasked."""

from pathlib import Path

import pytest

from gateway.newfile import new_file


def test_it_is_there_once_the_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with new_file(path, replace=False) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert [named.name for named in tmp_path.iterdir()] == ["a.csv"]


def test_a_failure_leaves_nothing_and_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"before")

    def fail() -> None:
        with new_file(path, replace=True) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"before"
    assert [named.name for named in tmp_path.iterdir()] == ["a.csv"]


def test_only_who_asks_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"before")
    with pytest.raises(FileExistsError), new_file(path, replace=False):
        pass
    with new_file(path, replace=True) as file:
        file.write(b"after")
    assert path.read_bytes() == b"after"


def test_a_file_that_comes_to_exist_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def lose() -> None:
        with new_file(path, replace=False) as file:
            file.write(b"late")
            path.write_bytes(b"first")

    with pytest.raises(FileExistsError):
        lose()
    assert path.read_bytes() == b"first"
    assert [named.name for named in tmp_path.iterdir()] == ["a.csv"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), new_file(tmp_path, replace=True):
        pass
    with pytest.raises(FileNotFoundError), new_file(tmp_path / "no" / "a.csv", replace=False):
        pass
