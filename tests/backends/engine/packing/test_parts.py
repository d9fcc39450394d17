"""Parts: no larger than asked, all bytes of all files, and nothing written on a full disk."""

import shutil
from pathlib import Path

import pytest

from backends.engine.packages import InstallError
from backends.engine.packing import parts as module
from backends.engine.packing.parts import LEAST_PART, part_size, write_bundle

FACTS = {"python": "3.11"}


def test_parts_are_below_the_size_and_add_up(tmp_path: Path):
    item, two = tmp_path / "one", tmp_path / "two"
    item.write_bytes(b"a" * (LEAST_PART - 3))
    two.write_bytes(b"b" * (2 * LEAST_PART + 3))
    packed = write_bundle(
        tmp_path / "out", [("x/one", item), ("two", two)], FACTS, LEAST_PART, lambda *_: None
    )
    found = sorted((tmp_path / "out").glob("part.*"))
    assert [path.stat().st_size for path in found] == [LEAST_PART] * 3
    joined = b"".join(path.read_bytes() for path in found)
    assert joined == item.read_bytes() + two.read_bytes()
    assert (packed.files, packed.parts, packed.total_bytes) == (2, 3, 3 * LEAST_PART)


def test_parts_of_an_earlier_bundle_do_not_stay(tmp_path: Path):
    big, small = tmp_path / "big", tmp_path / "small"
    big.write_bytes(b"a" * (2 * LEAST_PART))
    small.write_bytes(b"b")
    for path in (big, small):
        write_bundle(tmp_path / "out", [("f", path)], FACTS, LEAST_PART, lambda *_: None)
    assert [path.name for path in (tmp_path / "out").glob("part.*")] == ["part.000"]


def test_a_full_disk_is_said_before_a_part_is_written(tmp_path: Path, monkeypatch):
    usage = shutil._ntuple_diskusage(10, 10, 0)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage)
    (tmp_path / "f").write_bytes(b"a")
    with pytest.raises(InstallError, match=r"has 0\.0 GB free and the bundle takes 0\.0 GB"):
        write_bundle(tmp_path / "out", [("f", tmp_path / "f")], FACTS, LEAST_PART, lambda *_: None)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "size"), [("60M", 60 * 10**6), ("4g", 4 * 10**9), ("2000000", 2 * 10**6)]
)
def test_sizes_are_read(text: str, size: int):
    assert part_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "-60M", "1K", "60 pages", "0"])
def test_what_is_no_size_is_told(text: str):
    with pytest.raises(InstallError, match="a size of at least 2M"):
        part_size(text)


def test_an_earlier_bundle_stays_where_the_new_one_would_not_fit(tmp_path: Path, monkeypatch):
    small, big, out = tmp_path / "small", tmp_path / "big", tmp_path / "out"
    small.write_bytes(b"a" * 10)
    big.write_bytes(b"b" * 11)
    write_bundle(out, [("f", small)], FACTS, LEAST_PART, lambda *_: None)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(InstallError, match="GB free and the bundle takes"):
        write_bundle(out, [("f", big)], FACTS, LEAST_PART, lambda *_: None)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    write_bundle(out, [("f", small)], FACTS, LEAST_PART, lambda *_: None)  # in the old one's place


def test_what_is_no_part_of_a_bundle_stays(tmp_path: Path):
    (tmp_path / "out").mkdir()
    notes = tmp_path / "out" / "part.list"
    notes.write_text("mine")
    (tmp_path / "f").write_bytes(b"a")
    write_bundle(tmp_path / "out", [("f", tmp_path / "f")], FACTS, LEAST_PART, lambda *_: None)
    assert notes.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"a")
    with pytest.raises(InstallError, match=r"f/out: Not a directory"):
        write_bundle(
            tmp_path / "f" / "out", [("f", tmp_path / "f")], FACTS, LEAST_PART, lambda *_: None
        )
