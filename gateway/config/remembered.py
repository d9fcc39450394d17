"""Cache of the settings that most commands need, for a file that was read without a fault.

Reading the file imports all settings models and checks, which takes twice as long as a command's
work in the ledger. So the ledger's section is stored in the state directory with a hash of the file
and of the code that checked it. Any other file or version is read and checked in full.
"""

import hashlib
import importlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from gateway.config.settings import Settings

KNOWN_FILE = "config.known"
DEFAULT_STATE = ".breakeven"
_STATE_LINE = re.compile(rb"""^state_dir:[ ]*["']?([^"'#\n]+?)["']?[ ]*(#.*)?$""", re.MULTILINE)
_OTHERS_WRITE = 0o022
_PACKAGES = ("gateway/config", "gateway/policies", "router", "backends", "ledger")


class KnownLedger(NamedTuple):
    """Cached ledger section, without an address, which may be secret."""

    url_env: str | None
    url: None = None


class RememberedSettings:
    """Replacement of `Settings` that reads the file on first use of a value not cached."""

    def __init__(self, path: Path, state_dir: str, url_env: str | None) -> None:
        self._path = path
        self.state_dir = state_dir
        self.ledger = KnownLedger(url_env)

    @property
    def state(self) -> Path:
        return Path(self.state_dir)

    def __getattr__(self, name: str) -> Any:
        if name in ("_whole", "_path"):  # before the object is initialised
            raise AttributeError(name)
        return getattr(load_settings(self._path), name)


def load_remembered(path: Path) -> "Settings":
    """Return the file's settings like `load`; for a known file most are read on demand."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        text = path.read_bytes()
        state = _guess_state(text)
        known = json.loads(_read_own(state / KNOWN_FILE))
        if known["seen"] == _digest(text):
            remembered = RememberedSettings(path, known["state_dir"], known["url_env"])
            return cast("Settings", remembered)
    settings = load_settings(path)
    with suppress(OSError):
        _remember(path, settings)
    return settings


def load_settings(path: Path) -> "Settings":
    """Load the settings in full; imports the modules that ledger commands do not need."""
    loaded: Settings = importlib.import_module("gateway.config.settings").load(path)
    return loaded


def _remember(path: Path, settings: "Settings") -> None:
    """Store the ledger section if the file is unchanged since it was read.

    Otherwise a new text would count as checked.
    """
    text = path.read_bytes()
    state = _guess_state(text)
    if settings.ledger.url is not None or state != settings.state or not _is_own(state):
        return
    parse = importlib.import_module("gateway.config.settings").parse
    if parse(text.decode(), name=str(path)) != settings:
        return
    known = {
        "seen": _digest(text),
        "state_dir": settings.state_dir,
        "url_env": settings.ledger.url_env,
    }
    draft = state / f".{KNOWN_FILE}.{os.getpid()}"
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(known, file)
        draft.replace(state / KNOWN_FILE)
    finally:
        draft.unlink(missing_ok=True)


def _guess_state(text: bytes) -> Path:
    """Return the file's most likely state directory; the cached section confirms it."""
    found = _STATE_LINE.search(text)
    return Path(DEFAULT_STATE if found is None else os.fsdecode(found[1]))


def _read_own(path: Path) -> bytes:
    if not (_is_own(path.parent) and _is_own(path)):
        raise PermissionError(f"{path} may be somebody else's")
    return path.read_bytes()


def _is_own(path: Path) -> bool:
    """Return whether only the owner, who is the current user, can have written the file."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def _digest(text: bytes) -> str:
    """Return a hash of the text and of the code that would read it."""
    seen = hashlib.sha256(text)
    root = Path(__file__).resolve().parents[2]
    for name in _PACKAGES:
        for entry in _sources(root / name):
            seen.update(entry.encode())
    return seen.hexdigest()


def _sources(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                found = entry.stat()
                yield f"{entry.path} {found.st_size} {found.st_mtime_ns}\n"
