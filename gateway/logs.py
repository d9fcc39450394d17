"""Logging of every process that `serve` starts: one line per record, without secrets.

Format `text` is for people. Format `json` writes one object per line with `time` (UTC), `level`,
`logger`, `process` and `message`, and `request_id` and `error` where they exist. All records of
this product and of libraries pass one sink. The sink removes the secrets that the process knows and
all text that looks like a key. Printed lines are logged as `stdout` and `stderr` through the same
sink. Prompts and answers are never logged.
"""

import atexit
import io
import json
import logging
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from types import FrameType, TracebackType
from typing import Any, Protocol, TextIO

from backends.refusal import KEY_LIKE
from backends.secret import HIDDEN, Secret, strike_out

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)  # id of the current request
_OURS = ("breakeven", "gateway", "ledger", "backends")  # libraries log at WARNING or higher
LEVELS = {"stdout": "INFO", "stderr": "WARNING"}  # printed lines are always shown
LONGEST_LINE = 64 * 1024  # characters
_MEANINGLESS = (  # these end a process by default
    signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
    signal.SIGPOLL, signal.SIGPWR, signal.SIGSTKFLT,
)  # fmt: skip
# Characters that end a line or move a terminal's cursor.
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class LogFormat(Protocol):
    """Logging settings, implemented by `schema_reports.LogsSection`.

    A separate interface, because not every process imports that module.
    """

    @property
    def format(self) -> str: ...

    @property
    def level(self) -> str: ...

    @property
    def to(self) -> str: ...


class LogSink(logging.StreamHandler[Any]):
    """Log handler that writes to standard error; `serve` redirects it to a file per process."""

    def __init__(self, process: str, wanted: LogFormat, secrets: Iterable[Secret] = ()) -> None:
        super().__init__(sys.stderr)
        self._process = process
        self._as_json = wanted.format == "json"
        self._is_shared = wanted.to == "stdout"  # one stream for all processes of the host
        self._secrets = set(secrets)

    def hide(self, secrets: Iterable[Secret]) -> None:
        """Add secrets that were found after the start."""
        self._secrets.update(secrets)

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name, "process": self._process,
            "message": self._struck(record.getMessage()),
        }  # fmt: skip
        fields = {
            name: self._struck(value) if isinstance(value, str) else value
            for name, value in getattr(record, "fields", {}).items()
        }
        if (request := REQUEST.get()) is not None:
            said["request_id"] = request
        if record.exc_info and record.exc_info[0] is not None:  # asyncio passes `False`
            said["error"] = self._struck("".join(traceback.format_exception(*record.exc_info)))
        if self._as_json:
            return json.dumps(said | fields)
        if self._is_shared:
            said["logger"] = f"{self._process} {said['logger']}"
        said["message"] = " ".join(
            (said["message"], *(f"{name}={value}" for name, value in fields.items()))
        )
        return _line(said)

    def _struck(self, text: str) -> str:
        # A lone surrogate (a file name can contain one) is invalid JSON for many parsers.
        whole = text.encode("utf-8", "backslashreplace").decode()
        return KEY_LIKE.sub(HIDDEN, strike_out(whole, self._secrets))


def _line(said: dict[str, str]) -> str:
    whose = f" [{said['request_id']}]" if "request_id" in said else ""
    message = _CONTROLS.sub(lambda match_: repr(match_[0])[1:-1], said["message"])
    first = f"{said['time']} {said['level']} {said['logger']}{whose} {message}"
    # Indent the traceback, so that its text cannot look like a log line.
    return "\n  ".join([first, *said.get("error", "").splitlines()])


class StreamLogger(io.TextIOBase):
    """Replacement of a standard stream that logs each complete line.

    Errors of the sink itself are written to the real stream, which prevents an endless loop.
    """

    def __init__(self, name: str, real: TextIO) -> None:
        self._log, self._level = logging.getLogger(name), getattr(logging, LEVELS[name])
        self._log.setLevel(self._level)
        self._real = real
        self._begun = ""
        self._busy = threading.local()
        self._turn = threading.RLock()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a property of the base's, too
        return "utf-8"

    def fileno(self) -> int:
        return self._real.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if getattr(self._busy, "here", False):
            return self._real.write(text)
        with self._turn:
            *whole, self._begun = (self._begun + text).split("\n")
            if len(self._begun) > LONGEST_LINE:
                whole, self._begun = [*whole, self._begun], ""
        for line in whole:  # outside the lock: a failing sink prints here under its own lock
            self._say(line)
        return len(text)

    def close(self) -> None:
        """Write the rest of an unfinished line."""
        self._say(self._begun)
        self._begun = ""

    def _say(self, line: str) -> None:
        self._busy.here = True
        try:
            if line.strip():
                self._log.log(self._level, "%s", line)
        finally:
            self._busy.here = False


def start(
    process: str, wanted: LogFormat, secrets: Iterable[Secret] = (), *, printed: bool = True
) -> LogSink:
    """Send all log records and printed lines of this process through a new sink.

    With `printed=False` the standard streams stay unchanged, for processes with a terminal.
    """
    sink = LogSink(process, wanted, secrets)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    root.addHandler(sink)
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[wanted.level.upper()]))
    for name in _OURS:
        logging.getLogger(name).setLevel(wanted.level.upper())
    logging.captureWarnings(capture=True)
    sys.excepthook = _last_words
    outlive_signals()
    for name in LEVELS if printed else ():
        stream = StreamLogger(name, getattr(sys, name))
        setattr(sys, name, stream)
        atexit.register(stream.close)
    return sink


def outlive_signals() -> None:
    """Log signals that would end the process by default, and continue.

    Signals that already have a handler or are ignored stay unchanged.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _MEANINGLESS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _name_signal)


def _name_signal(number: int, _frame: FrameType | None) -> None:
    """Log the signal in a thread, because this thread may hold the log's lock."""
    words = "%s means nothing to this process: it goes on"
    warn = logging.getLogger("breakeven").warning
    threading.Thread(target=warn, args=(words, signal.Signals(number).name), daemon=True).start()


def _last_words(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("breakeven").critical(
        "the process ends because of an error", exc_info=(kind, error, trace)
    )
