"""Make the engine's environment from a hash-locked set; say what is being done meanwhile.

The environment is built beside its place and moved there when whole, so a failed installation
leaves a working one alone. PyPI does not host torch's CPU build: where no configured place has it
for this Python, the answer is `NotAvailable`, a result and not an error, because the gateway then
comes up on the simulated engine.
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
    """One thing worth drawing; `fraction` is `None` while the end is unknown."""

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
    """No vLLM for this machine from here; `command` adds it once the wheel can be had."""

    reason: str
    command: str


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """The parts and place of an installation; the defaults are those of the plain command."""

    directory: Path
    flavour: Flavour | None = None
    locks: Path | None = None
    find_links: tuple[str, ...] = ()
    torch_index: str = torchwheel.INDEX


def install(
    request: InstallRequest, report: Callable[[InstallProgress], None]
) -> InstallResult | NotAvailable:
    """Install, or find that it is installed already. Raises `InstallError` when it breaks."""
    flavour = request.flavour or flavour_here()
    locks = request.locks or lock_folder(flavour)
    digest = _digest(locks)
    place = Environment(request.directory)
    stamp = place.stamp()
    if stamp is not None and stamp.lock_sha256 == digest:
        if stamp.flavour == "cpu":
            mend_cpu(place, stamp.version)  # one installed before a mend was known
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
    """One installation in a folder at a time: two would build in one place, each removing it first.

    The lock is on the folder itself, so that nothing of it is left there.
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
    """Return the locked set's folder: beside this file if installed, else under `deploy/`."""
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
    """Mend, start vLLM once (which also caches its bytecode), and only then stamp."""
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
    """Times the stages and passes progress on."""

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
