"""Parts that come while tests run: who uses one waits for it, and for nothing else."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy import coming_parts, partsinstall
from deploy.parts import UNAVAILABLE, Part, is_always

ROOT = Path(__file__).resolve().parents[2]
WAIT = "from deploy.coming_parts import *; import sys; wait_for({!r}, locks=Path({!r}))"
WAIT += f"; print(os.environ['{UNAVAILABLE}'])"


def part(name: str) -> Part:
    return Part(name, f"the {name}", lambda: None, "install it", is_always)


class Installers:
    """Each process that installs was told to hold these: copies of its descriptors."""

    def __init__(self) -> None:
        self.held: list[dict[str, int]] = []

    def start(self, _python: Path, held: Mapping[str, int]) -> None:
        self.held.append({name: os.dup(descriptor) for name, descriptor in held.items()})


def begin(names: list[str], folder: Path) -> list[dict[str, int]]:
    started = Installers()
    missing = [part(name) for name in names]
    coming_parts.begin(missing, Path("python"), locks=folder, start=started.start)
    return started.held


def test_who_uses_a_part_waits_until_it_is_there_or_known_not_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(UNAVAILABLE, "other")
    (held,) = begin(["one", "two", "three"], tmp_path)
    waiting = {
        name: subprocess.Popen(
            [sys.executable, "-c", WAIT.format(name, str(tmp_path))],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    }  # fmt: skip
    through: list[str] = []

    def install(names, python, stages, installer, *, tell) -> None:
        assert names == ["one", "two", "three"]
        for name, is_to_be_had in (("one", True), ("two", False)):
            assert waiting[name].poll() is None, "nobody has come so far before the part"
            assert coming_parts.is_coming(name, locks=tmp_path)
            tell(name, is_to_be_had=is_to_be_had)
            through.append(waiting[name].communicate(timeout=60)[0].strip())
            assert not coming_parts.is_coming(name, locks=tmp_path)

    monkeypatch.setattr(partsinstall, "install_parts", install)
    coming_parts.install(held, Path("python"))
    assert through == ["other", "other two"]
    assert coming_parts.is_coming("three", locks=tmp_path)
    os.close(held["three"])  # as the kernel does for a process that dies
    coming_parts.wait_for_all(locks=tmp_path)
    assert os.environ[UNAVAILABLE] == "other two"


def test_a_part_that_another_run_installs_is_left_to_it(tmp_path: Path) -> None:
    with (tmp_path / "one").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert begin(["one"], tmp_path) == []
        (held,) = begin(["one", "two"], tmp_path)
        assert list(held) == ["two"]
        assert coming_parts.is_coming("one", locks=tmp_path)
        os.close(held["two"])


def test_who_asks_for_what_was_there_waits_for_nothing(tmp_path: Path) -> None:
    assert begin([], tmp_path) == []
    coming_parts.wait_for("one", locks=tmp_path)
    assert not coming_parts.is_coming("one", locks=tmp_path)


def test_the_process_that_installs_holds_the_locks_and_opens_them_at_its_end(tmp_path) -> None:
    """The part has come meanwhile, so there is nothing to install."""
    (tmp_path / "one").touch()
    descriptor = os.open(tmp_path / "one", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    script = (
        "import sys; from deploy import coming_parts, parts; "
        "parts.PARTS = (parts.Part('one', 'it', lambda: '/there', '', parts.is_always),); "
        "coming_parts.main(sys.argv[1:])"
    )
    words = [sys.executable, "-c", script, sys.executable, f"one={descriptor}"]
    running = subprocess.Popen(
        words, cwd=ROOT, pass_fds=[descriptor], stdout=subprocess.PIPE, text=True
    )
    os.close(descriptor)
    coming_parts.wait_for("one", locks=tmp_path)
    said, _ = running.communicate(timeout=60)
    assert "parts, beside the tests: " in said
    assert running.returncode == 0
