"""A file of secret bytes, created at first use and readable only by its owner."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

BYTES = 32


def read_or_create_secret(
    path: Path, new_bytes: Callable[[int], bytes] = secrets.token_bytes
) -> bytes:
    """Return the file's content. If several processes create it, the first one wins."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, new_bytes(BYTES))
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_bytes()


def read_secret(path: Path) -> bytes | None:
    """Return the file's content, `None` if it is missing or too short."""
    try:
        found = path.read_bytes()
    except OSError:
        return None
    return found if len(found) >= BYTES else None
