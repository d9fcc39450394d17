"""Real parts of the tests, installed while the first tests run.

Half of the installation time is waiting for packages. `make test` starts the installation, then
executes pytest. Each missing part has a file, which the installing process keeps locked until the
part is installed or is known to be unavailable. A test waits for the parts that it uses, and so do
other test runs on this machine. The kernel releases the locks of a process that dies.

    python -m deploy.coming_parts PYTHON NAME=DESCRIPTOR ...    the process that `begin` starts

This module needs only the standard library.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from deploy import partsinstall
from deploy.parts import UNAVAILABLE, Part
from gateway.host.stages import StartStages

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "build" / "coming"
NOWHERE = "nowhere to be had"  # a lock file's text if no source has the part


def start_installer(python: Path, held: Mapping[str, int]) -> None:
    """Start the installing process and pass it the locked file of each part."""
    words = [f"{name}={descriptor}" for name, descriptor in held.items()]
    subprocess.Popen(
        [sys.executable, "-m", "deploy.coming_parts", str(python), *words],
        cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=list(held.values()),
    )  # fmt: skip


def begin(
    missing: Sequence[Part],
    python: Path,
    *,
    locks: Path = LOCKS,
    start: Callable[[Path, Mapping[str, int]], None] = start_installer,
) -> None:
    """Start a process that installs these parts, except those already being installed.

    After the return, `wait_for` waits for each of the parts.
    """
    locks.mkdir(parents=True, exist_ok=True)
    held: dict[str, int] = {}
    for part in missing:
        descriptor = os.open(locks / part.name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        else:
            os.ftruncate(descriptor, 0)
            held[part.name] = descriptor
    if held:
        start(python, held)
    for descriptor in held.values():
        os.close(descriptor)


def is_coming(name: str, *, locks: Path = LOCKS) -> bool:
    """Return whether the part is being installed."""
    try:
        with (locks / name).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def wait_for(name: str, *, locks: Path = LOCKS) -> None:
    """Wait until nothing is installing the part. Add it to `UNAVAILABLE` if no source has it.

    Returns at once if the part was installed before.
    """
    try:
        with (locks / name).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            said = file.read()
    except FileNotFoundError:
        return
    known = os.environ.get(UNAVAILABLE, "").split()
    if said == NOWHERE and name not in known:
        os.environ[UNAVAILABLE] = " ".join([*known, name])


def wait_for_all(*, locks: Path = LOCKS) -> None:
    """Wait until no part is being installed."""
    for file in sorted(locks.glob("*")):
        wait_for(file.name, locks=locks)


def install(held: Mapping[str, int], python: Path) -> None:
    """Install the parts of `held`, which maps names to descriptors of lock files."""
    left = dict(held)

    def release(name: str, *, is_to_be_had: bool) -> None:
        descriptor = left.pop(name)
        if not is_to_be_had:
            os.write(descriptor, NOWHERE.encode())
        os.close(descriptor)

    begun_s = time.monotonic()
    stages = StartStages(clock=time.monotonic, say=lambda _: None)
    partsinstall.install_parts(list(held), python, stages, None, tell=release)
    print(f"\n   parts, beside the tests: {time.monotonic() - begun_s:.1f} s", flush=True)


def main(arguments: Iterable[str]) -> None:
    """Install the parts that `begin` named, in the process that it started."""
    python, *words = arguments
    pairs = [word.partition("=") for word in words]
    install({name: int(descriptor) for name, _, descriptor in pairs}, Path(python))


if __name__ == "__main__":
    main(sys.argv[1:])
