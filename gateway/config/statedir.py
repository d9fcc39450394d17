"""State directory: created, checked, and locked by one `serve` at a time.

Two parents in one directory would write the same ledger, shared memory and sockets. The lock is the
kernel's (`flock`), so it ends with the process in any case.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import ConfigError
from ledger.locks import is_locked

if TYPE_CHECKING:
    from gateway.config.schema import Settings

LOCK = "lock"
LEDGER = "ledger.db"
DIRECTORIES = ("run", "journal", "logs", "models", "profiles")


class StateDirLock:
    """Lock of a state directory, until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def hold(settings: "Settings") -> StateDirLock:
    """Create the directory and lock it. Raises `ConfigError` if it is locked or unusable."""
    state = settings.state.resolve()
    with translate_disk_errors(settings):
        os.umask(0o077)  # also for children: the files contain key hashes, prompt sizes and bills
        for name in DIRECTORIES:
            (state / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        _refuse_later_journals(state)
        _close(state)
        descriptor = os.open(state / "run" / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.truncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode().strip() or "unknown"
            os.close(descriptor)
            raise ConfigError(
                [
                    (
                        f"state_dir: {state} is in use by another `breakeven` (process {holder}): "
                        "stop it first"
                    )
                ]
            ) from None
        except OSError:
            os.close(descriptor)
            raise
    return StateDirLock(descriptor)


def _refuse_later_journals(state: Path) -> None:
    """Reject journals of a later version, whose records would be missing in the ledger."""
    from ledger.journals.homes import later_journals  # noqa: PLC0415  (few commands hold it)

    if later := later_journals(state / "journal"):
        words = "holds journals of a later version of breakeven, which this one cannot read"
        todo = "run `breakeven ledger drain` of that version first, or start it"
        raise ConfigError([f"state_dir: {later[0]} {words}: {todo}"])


def is_held(settings: "Settings") -> bool:
    """Return whether a `serve` holds the directory now."""
    return is_locked(settings.state.resolve() / "run" / LOCK)


def _close(state: Path) -> None:
    """Restrict the directory's content to its owner; other owners' files stay unchanged.

    Below a closed directory nothing can be reached, so of trees only the top is changed.
    """
    for path in (state, *state.iterdir(), *(p for d in DIRECTORIES for p in (state / d).iterdir())):
        with suppress(FileNotFoundError):  # files that other processes remove
            known = path.lstat()
            if known.st_uid == os.getuid() and known.st_mode & 0o077 and not path.is_symlink():
                path.chmod(known.st_mode & 0o700)


@contextmanager
def translate_disk_errors(settings: "Settings") -> Iterator[None]:
    """Turn errors of the disk in the block into one fault with setting and path."""
    state = settings.state.resolve()
    try:
        if state.exists() and not state.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(state))
        yield
    except OSError as error:
        raise ConfigError([f"state_dir: {_trouble(state, error)}"]) from error


def _trouble(state: Path, error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{error.filename or state} is a file where a directory is needed"
    return f"{error.filename or state} cannot be used: {error.strerror}"
