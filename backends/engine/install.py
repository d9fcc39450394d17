"""Installation of the engine's environment from a hash-locked set, with progress reports.

The environment is built under a temporary name and renamed when complete, so that a failed
installation leaves a working one untouched. PyPI does not host torch's CPU build. If no configured
index has it for this Python, the result is `NotAvailable`. This is not an error, because the
gateway then starts with the simulated engine.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from backends.engine import torchwheel
from backends.engine.environment import (
    Environment,
    EnvironmentStamp,
    Flavour,
    flavour_here,
    mend_cpu,
    vllm_version,
)
from backends.engine.flags import BadFlags, known_flags
from backends.engine.packages import InstallError, PackageInstaller, find_installer

__all__ = [
    "InstallError",
    "InstallProgress",
    "InstallRequest",
    "InstallResult",
    "NotAvailable",
    "install",
    "lock_folder",
]


@dataclass(frozen=True, slots=True)
class InstallProgress:
    """Progress of an installation. `fraction` is `None` while the total is unknown."""

    stage: str  # "environment" | "torch" | "packages" | "finish"
    message: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class InstallResult:
    directory: Path
    flavour: Flavour
    version: str
    fresh: bool
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotAvailable:
    """No index has vLLM for this machine. `command` installs it from a given torch wheel."""

    reason: str
    command: str


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """Parameters of an installation. The defaults are those of `breakeven engine install`."""

    directory: Path
    flavour: Flavour | None = None
    locks: Path | None = None
    find_links: tuple[str, ...] = ()
    torch_index: str = torchwheel.INDEX


def install(
    request: InstallRequest, report: Callable[[InstallProgress], None]
) -> InstallResult | NotAvailable:
    """Install the engine unless the same lock is installed. Raises `InstallError` on failure."""
    flavour = request.flavour or flavour_here()
    locks = request.locks or lock_folder(flavour)
    digest = _digest(locks)
    place = Environment(request.directory)
    stamp = place.stamp()
    if stamp is not None and stamp.lock_sha256 == digest:
        if stamp.flavour == "cpu":
            mend_cpu(place, stamp.version)  # may be installed by a version without this patch
        return InstallResult(place.directory, stamp.flavour, stamp.version, fresh=False)
    partial = Environment(request.directory.with_name(request.directory.name + ".partial"))
    watch = _Watch(report)
    with _lock_folder(partial.directory.parent):
        shutil.rmtree(partial.directory, ignore_errors=True)
        try:
            with_problem = _build(partial, request, (flavour, locks), watch)
            if with_problem is not None:
                return with_problem
            version = _finish(partial, flavour, digest, watch)
            shutil.rmtree(place.directory, ignore_errors=True)
            partial.directory.rename(place.directory)
        finally:
            shutil.rmtree(partial.directory, ignore_errors=True)
    return InstallResult(place.directory, flavour, version, fresh=True, seconds=watch.stop())


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for one installation at a time. Raises `InstallError` when it is locked.

    Two installations would delete each other's partial environment. The lock is on the folder
    itself, so that no lock file remains.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = "another process installs an engine there: wait until it ends"
            raise InstallError(f"{folder}: {words}") from None
        yield
    finally:
        os.close(descriptor)


def lock_folder(flavour: Flavour) -> Path:
    """Return the folder of locks: beside this file if installed, else under `deploy/`."""
    name = f"engine-{flavour}"
    packaged = Path(__file__).parent / "locks" / name
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "deploy" / name


def _build(
    partial: Environment, request: InstallRequest, wanted: tuple[Flavour, Path], watch: "_Watch"
) -> NotAvailable | None:
    flavour, locks = wanted
    watch.start("environment", f"Python {sys.version_info.major}.{sys.version_info.minor}")
    installer = find_installer(partial.python)
    installer.make_environment(partial.directory)
    wheel: Path | None = None
    if flavour == "cpu":
        watch.start("torch", "looking for torch's CPU build")
        wheel = _torch(installer, partial, request, locks, watch)
        if wheel is None:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            return NotAvailable(
                f"no {torchwheel.REQUIREMENT} for Python {version} in pip's configured places, "
                f"nor at {request.torch_index}",
                "breakeven engine install --find-links FOLDER_OR_URL_WITH_THE_TORCH_WHEEL",
            )
        installer.install_files([wheel], watch.report_progress)
        shutil.rmtree(wheel.parent, ignore_errors=True)
    watch.start("packages", "vLLM and what it needs")
    installer.install_lock(locks / "requirements.lock", watch.report_progress)
    return None


def _finish(partial: Environment, flavour: Flavour, digest: str, watch: "_Watch") -> str:
    """Patch the CPU build, start vLLM once to cache its bytecode, then write the stamp."""
    watch.start("finish", "starting vLLM once")
    version = vllm_version(partial)
    if version is None:
        raise InstallError("the set was installed, but vLLM is not in it")
    if flavour == "cpu":
        mend_cpu(partial, version)
    try:
        known_flags(partial)
    except BadFlags as error:
        raise InstallError(str(error)) from error
    partial.write_stamp(EnvironmentStamp(digest, flavour, version))
    return version


def _torch(
    installer: PackageInstaller,
    partial: Environment,
    request: InstallRequest,
    locks: Path,
    watch: "_Watch",
) -> Path | None:
    search = torchwheel.WheelSearch(
        python=partial.python,
        pip=installer.pip,
        folder=partial.directory / "wheels",
        known_sha256=torchwheel.known_hashes(locks / "torch.lock"),
        find_links=request.find_links,
        index=request.torch_index,
    )
    return torchwheel.fetch(search, watch.report_progress)


def _digest(locks: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(locks.glob("*.lock")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Watch:
    """Stopwatch of the stages that also reports progress."""

    def __init__(self, report: Callable[[InstallProgress], None]) -> None:
        self._report = report
        self._stage = ""
        self._since = 0.0
        self._seconds: dict[str, float] = {}

    def start(self, stage: str, message: str) -> None:
        self._close()
        self._stage, self._since = stage, time.monotonic()
        self.report_progress(message, None)

    def report_progress(self, message: str, fraction: float | None) -> None:
        self._report(InstallProgress(self._stage, message, fraction))

    def stop(self) -> dict[str, float]:
        self._close()
        return self._seconds

    def _close(self) -> None:
        if self._stage:
            self._seconds[self._stage] = round(time.monotonic() - self._since, 2)
