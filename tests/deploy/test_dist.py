"""What is released is what the tree has; the whole of it runs in the long tier."""

import zipfile
from pathlib import Path

import pytest

from deploy import dist
from deploy.dist import DistError, differences


def wheel(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_wheels_differ_by_name_or_bytes(tmp_path: Path) -> None:
    first = wheel(tmp_path / "a.whl", same="1", changed="1", lost="1")
    second = wheel(tmp_path / "b.whl", same="1", changed="2", added="1")
    assert differences(first, first) == []
    assert differences(first, second) == ["added", "changed", "lost"]


def test_a_command_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(DistError, match=r"ended with 3: no"):
        dist._run(["sh", "-c", "echo no >&2; exit 3"], tmp_path, {})
    dist._run(["sh", "-c", "exit 3"], tmp_path, {}, statuses=(0, 3))


def test_a_demo_that_ends_is_no_demo_that_is_ready(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho it cannot start >&2; exit 1\n")
    broken.chmod(0o700)
    with (
        pytest.raises(DistError, match="it cannot start"),
        dist._demo(str(broken), tmp_path, {"PATH": "/bin:/usr/bin"}),
    ):
        pass


@pytest.mark.long
def test_wheel_and_archive_are_the_same_and_run_in_an_empty_folder(tmp_path: Path) -> None:
    found, archive = dist.build_all(tmp_path / "dist")
    assert archive.stat().st_size < 20e6
    lines = list(dist.try_wheel(found, tmp_path))
    assert lines[-1] == "breakeven demo ends on its own word"
