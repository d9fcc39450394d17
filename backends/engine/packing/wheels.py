"""Download of a lock's wheels for another machine; existing ones with a locked hash stay."""

import os
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.engine import torchwheel
from backends.engine.packages import InstallError, run
from backends.engine.packing.lockfile import LockedPackage, WheelPlatform
from backends.engine.packing.unpack import sha256_of

Say = Callable[[str, float | None], None]
AT_ONCE = 8  # wheels of one pip call; a failed call keeps nothing


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Sources of wheels: pip with its own configuration, and additional `find_links`."""

    pip: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    torch_index: str = torchwheel.INDEX


def fetch(
    wanted: Sequence[LockedPackage],
    target: WheelPlatform,
    source: WheelSource,
    folder: Path,
    say: Say,
) -> list[Path]:
    """Download the wheels of all packages into `folder`. Return their paths.

    Raises `InstallError` with pip's last lines when a download fails, or when a hash is wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [wanted_value for wanted_value in wanted if find_wheel(wanted_value, folder) is None]
    done = len(wanted) - len(missing)
    for place in range(0, len(missing), AT_ONCE):
        some = missing[place : place + AT_ONCE]
        names = ", ".join(package.name for package in some)
        say(f"{done + place} of {len(wanted)} wheels; {names}", (done + place) / len(wanted))
        _download(some, target, source, folder)
    wheels = []
    for wanted_value in wanted:
        wheel = find_wheel(wanted_value, folder)
        if wheel is None:
            raise InstallError(
                f"{wanted_value.name} {wanted_value.version} has another hash than in its lock file"
            )
        wheels.append(wheel)
    return wheels


def find_wheel(locked_package: LockedPackage, folder: Path) -> Path | None:
    """Return a package's wheel if its hash is locked, else `None`. Wrong files are removed."""
    stem = re.sub(
        r"[-_.]+", "[-_.]+", re.escape(locked_package.name).replace(r"\-", "-").replace(r"\.", ".")
    )
    named = re.compile(rf"{stem}-{re.escape(locked_package.version)}-.*\.whl", re.IGNORECASE)
    for wheel in sorted(folder.glob("*.whl")):
        if named.fullmatch(wheel.name):
            if sha256_of(wheel) in locked_package.sha256:
                return wheel
            wheel.unlink()
    return None


def fetch_torch(
    locks: Path, target: WheelPlatform, source: WheelSource, folder: Path, say: Say
) -> Path:
    """Download torch's CPU build. Raises `InstallError` when no source has it."""
    folder.mkdir(parents=True, exist_ok=True)
    known = torchwheel.known_hashes(locks / "torch.lock")
    search = torchwheel.WheelSearch(
        python=Path(sys.executable),
        pip=source.pip,
        folder=folder,
        known_sha256=known,
        find_links=source.find_links,
        index=source.torch_index,
        target=tuple(target.pip_arguments),
    )
    wheel = torchwheel.fetch(search, say)
    if wheel is None:
        raise InstallError(
            f"no {torchwheel.REQUIREMENT} for Python {target.python} in pip's configured places, "
            f"nor at {source.torch_index}: give --find-links a place that has it"
        )
    return wheel


def unpacked_bytes(wheel: Path) -> int:
    """Return the bytes of a wheel's files once installed. Raises `InstallError`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile as error:
        raise InstallError(f"{wheel.name} is not a wheel: {error}") from error


def glibc_of(wheels: Sequence[Path]) -> str:
    """Return the glibc version, such as "2.28", that the wheels require, by their names."""
    minors = [5]
    for wheel in wheels:
        tags = [int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", wheel.name)]
        minors += [min(tags)] if tags else [17] if "manylinux2014" in wheel.name else []
    return f"2.{max(minors)}"


def _download(
    some: Sequence[LockedPackage], target: WheelPlatform, source: WheelSource, folder: Path
) -> None:
    lock = folder / "fetching.lock"
    lock.write_text("".join(package.lines for package in some), encoding="utf-8")
    links = [word for place in source.find_links for word in ("--find-links", place)]
    command = [
        *source.pip, "download", "--no-deps", "--require-hashes", "--no-input",
        "--only-binary", ":all:", "--disable-pip-version-check", "--progress-bar", "off",
        "--dest", str(folder), *target.pip_arguments, *links, "-r", str(lock),
    ]  # fmt: skip
    code, tail = run(command, os.environ)
    lock.unlink()
    if code != 0 and "No space left" in tail:
        words = "the disk is full: make room, what came is kept and the same command goes on"
        raise InstallError(f"{words}\n{tail.splitlines()[-1]}")
    if code != 0:
        raise InstallError(f"wheels could not be fetched; downloaded wheels are kept\n{tail}")
