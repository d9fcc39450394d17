"""Log of finished steps as JSON lines, from which an interrupted run continues.

The first line describes the work. A file of other work is refused. An incomplete last line (a kill
during a write) is ignored. Only one process may use a log at a time: two would overwrite each
other's entries, and each would take the other's engine for a leftover.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class OtherWork(ValueError):
    """A log cannot be used: it is of other work, not writable, or in use by another process."""


@contextmanager
def open_log(path: Path) -> Iterator[None]:
    """Lock a log for this process. Raises `OtherWork` when another process has it.

    The kernel releases the lock when the process ends, even by a kill.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise OtherWork(f"{path} cannot be written: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = "another process works on it: wait until it ends, or name another file"
            raise OtherWork(f"{path}: {words}") from None
        yield


class WorkLog:
    """Entries of a log by key. Of several entries with one key the last one counts."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self._path = path
        self._done: dict[str, dict[str, Any]] = {}
        head = {"about": json.loads(json.dumps(about))}
        lines = self._lines()
        if not lines:
            self._start(head)
            return
        if lines[0] != head:
            known, wanted = lines[0].get("about"), head["about"]
            kept = known if isinstance(known, dict) else {}
            apart = sorted(name for name in wanted if kept.get(name) != wanted[name])
            raise OtherWork(
                f"{path} belongs to other work ({', '.join(apart) or 'no such log'} differ): name"
                " another file, or move this one away"
            )
        for line in lines[1:]:
            if "key" in line:
                self._done[line["key"]] = line

    @property
    def done(self) -> Mapping[str, dict[str, Any]]:
        return self._done

    def add(self, key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Append an entry and return it. Raises `OtherWork` when it cannot be written.

        An entry that is not kept would be measured again.
        """
        line = {"key": key, **json.loads(json.dumps(entry))}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise OtherWork(f"{self._path} cannot be written: {error.strerror}") from error
        self._done[key] = line
        return line

    def _lines(self) -> list[dict[str, Any]]:
        """Return the complete lines, after removing an incomplete last line from the file."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise OtherWork(f"{self._path} cannot be read: {error}") from error
        whole, newline, rest = text.rpartition("\n")
        if rest:
            self._path.write_text(whole + newline, encoding="utf-8")
        try:
            found = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise OtherWork(f"{self._path} is not a log of this kind: {error}") from error
        if not all(isinstance(line, dict) for line in found):
            raise OtherWork(f"{self._path} is not a log of this kind")
        return found

    def _start(self, head: Mapping[str, Any]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        except OSError as error:
            raise OtherWork(f"{self._path} cannot be written: {error.strerror}") from error
