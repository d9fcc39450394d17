"""Download of torch's CPU build, which PyPI does not host.

pip is tried first with the user's own configuration (a mirror, a folder of wheels), then PyTorch's
index. The timeout is short, so that a machine without access loses seconds and not minutes. A file
that the lock names must have its hash; others have the hash that their index publishes.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.engine.packages import InstallError, Say, direct_pip, run

REQUIREMENT = "torch==2.13.0+cpu"
INDEX = "https://download.pytorch.org/whl/cpu"
_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class WheelSearch:
    """Search for a wheel: indexes, interpreter, target folder and the locked hashes."""

    python: Path
    pip: tuple[str, ...] | None
    folder: Path
    known_sha256: frozenset[str]
    find_links: Sequence[str] = ()
    index: str = INDEX
    target: Sequence[str] = ()  # pip's arguments for another machine


def fetch(search: WheelSearch, say: Say) -> Path | None:
    """Download the wheel into `search.folder`, or return `None` if no index has it.

    Raises `InstallError` when pip is missing or the hash is wrong.
    """
    if search.pip is None:
        raise InstallError("pip is needed to fetch torch: run `apt-get install python3-pip`")
    search.folder.mkdir(parents=True, exist_ok=True)
    links = [word for place in search.find_links for word in ("--find-links", place)]
    say("in pip's configured places", None)
    wheel = _download(search, links, say)
    if wheel is None:
        say(f"at {search.index}", None)
        wheel = _download(search, ["--index-url", search.index], say)
    if wheel is not None:
        _check(wheel, search.known_sha256)
    return wheel


def known_hashes(lock: Path) -> frozenset[str]:
    return frozenset(re.findall(r"sha256:([0-9a-f]{64})", lock.read_text(encoding="utf-8")))


def _download(search: WheelSearch, where: Sequence[str], say: Say) -> Path | None:
    assert search.pip is not None
    command = [
        *direct_pip(search.pip, search.python), "download", "--no-deps", "--no-input",
        "--only-binary", ":all:", "--timeout", str(_TIMEOUT_S), "--retries", "0",
        "--disable-pip-version-check", "--progress-bar", "raw", "--dest", str(search.folder),
        *search.target, *where, REQUIREMENT,
    ]  # fmt: skip
    code, tail = run(command, os.environ, lambda line: _progress(line, say))
    if code == 2 and "progress-bar" in tail:  # pip before 24.1 has no raw progress
        command[command.index("raw")] = "off"
        code, tail = run(command, os.environ)
    if code != 0:
        return None
    return next(iter(sorted(search.folder.glob("torch-*.whl"))), None)


def _progress(line: str, say: Say) -> None:
    found = re.match(r"Progress (\d+) of (\d+)", line)
    if found and int(found[2]):
        say(f"{int(found[1]) >> 20} of {int(found[2]) >> 20} MiB", int(found[1]) / int(found[2]))


def _check(wheel: Path, known: frozenset[str]) -> None:
    """Raise `InstallError`, removing the file, if a locked build has another hash."""
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest not in known and "-cp311-cp311-manylinux_2_28_x86_64" in wheel.name:
        shutil.rmtree(wheel.parent, ignore_errors=True)
        raise InstallError(f"{wheel.name} is not the locked file (sha256 {digest})")
