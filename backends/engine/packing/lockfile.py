"""Parser of locks for another machine: the packages that apply there, with their hashes.

pip evaluates a lock's markers for the Python that it runs on, even when it downloads for another
one. A bundle needs them evaluated for its target host.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

from backends.engine.packages import InstallError

_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)\s*(?:;\s*([^\\]*))?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WheelPlatform:
    """Target machine of wheels. `python` is a version such as "3.11".

    `glibc` is the newest C library that a wheel may require, such as (2, 34).
    """

    python: str
    machine: str = "x86_64"
    glibc: tuple[int, int] = (2, 34)

    @property
    def pip_arguments(self) -> list[str]:
        """Return the arguments with which `pip download` selects packages for this platform."""
        words = ["--python-version", self.python, "--implementation", "cp"]
        for minor in range(self.glibc[1], 4, -1):
            words += ["--platform", f"manylinux_2_{minor}_{self.machine}"]
        for old in ("manylinux2014", "manylinux2010", "manylinux1", "linux"):
            words += ["--platform", f"{old}_{self.machine}"]
        return words


@dataclass(frozen=True, slots=True)
class LockedPackage:
    name: str
    version: str
    sha256: frozenset[str]

    @property
    def lines(self) -> str:
        hashes = "".join(f" \\\n    --hash=sha256:{name}" for name in sorted(self.sha256))
        return f"{self.name}=={self.version}{hashes}\n"


def read_lock(lock: Path, target: WheelPlatform) -> list[LockedPackage]:
    """Return a lock's packages for a platform. Raises `InstallError` when a hash is missing."""
    return list(_entries(lock, target))


def _entries(lock: Path, target: WheelPlatform) -> Iterator[LockedPackage]:
    text = lock.read_text(encoding="utf-8")
    found = list(_ENTRY.finditer(text))
    ends = [match_.start() for match_ in found[1:]] + [len(text)]
    for entry, end in zip(found, ends, strict=True):
        marker = (entry[3] or "").strip()
        if marker and not applies(marker, target):
            continue
        hashes = frozenset(re.findall(r"sha256:([0-9a-f]{64})", text[entry.end() : end]))
        if not hashes:
            raise InstallError(f"{lock}: {entry[1]} has no hash")
        yield LockedPackage(entry[1], entry[2], hashes)


def applies(marker: str, target: WheelPlatform) -> bool:
    """Return whether a marker (PEP 508) is true on a platform.

    Raises `InstallError` when the marker is not valid.
    """
    known = {
        "python_version": target.python,
        "python_full_version": f"{target.python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_machine": target.machine,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    try:
        return Marker(marker).evaluate(known, context="requirement")
    except (InvalidMarker, UndefinedEnvironmentName) as error:
        raise InstallError(f"a lock file has an unsupported marker: {marker}") from error
