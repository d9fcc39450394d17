"""The log of every process that `serve` starts: a line each, of no secret, with its request's id.

`text` is for people, `json` for what collects logs: an object a line with `time` (UTC), `level`,
`logger`, `process` and `message`, and where there are any `request_id` and `error`. Whatever is
logged, by us or by a library, passes one sink, which strikes out the secrets that the process has
in its hands and whatever looks like a key; so does what is printed, line by line, as of `stdout`
and `stderr`. Prompts and answers are logged nowhere.
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

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)  # whose work this is
_OURS = ("breakeven", "gateway", "ledger", "backends")  # what libraries say is a warning at least
LEVELS = {"stdout": "INFO", "stderr": "WARNING"}  # whoever prints has decided that it is to be seen
LONGEST_LINE = 64 * 1024  # characters
_MEANINGLESS = (  # would end a process by default
    signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
    signal.SIGPOLL, signal.SIGPWR, signal.SIGSTKFLT,
)  # fmt: skip
# What ends a line somewhere, or moves a terminal's cursor.
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class LogFormat(Protocol):
    """The part of `schema_reports.LogsSection` that is read; not every process imports that."""

    @property
    def format(self) -> str: ...

    @property
    def level(self) -> str: ...

    @property
    def to(self) -> str: ...


class LogSink(logging.StreamHandler[Any]):
    """Standard error, which `serve` keeps in the process's own file."""

    def __init__(self, process: str, wanted: LogFormat, secrets: Iterable[Secret] = ()) -> None:
        super().__init__(sys.stderr)
        self._process = process
        self._as_json = wanted.format == "json"
        self._is_shared = wanted.to == "stdout"  # by all processes of the host
        self._secrets = set(secrets)

    def hide(self, secrets: Iterable[Secret]) -> None:
        """These, too: they were found after the start."""
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
        if record.exc_info and record.exc_info[0] is not None:  # asyncio says `False` for none
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
        # Half a character (a file's name can hold one) is no JSON to many who read it.
        whole = text.encode("utf-8", "backslashreplace").decode()
        return KEY_LIKE.sub(HIDDEN, strike_out(whole, self._secrets))


def _line(said: dict[str, str]) -> str:
    whose = f" [{said['request_id']}]" if "request_id" in said else ""
    message = _CONTROLS.sub(lambda match_: repr(match_[0])[1:-1], said["message"])
    first = f"{said['time']} {said['level']} {said['logger']}{whose} {message}"
    # A traceback's lines are set in, so that no text within begins a line of its own.
    return "\n  ".join([first, *said.get("error", "").splitlines()])


class StreamLogger(io.TextIOBase):
    """In place of a standard stream: each whole line of text is a record of that logger.

    What the sink itself fails at is said on the real stream, or it would be logged without end.
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
        for line in whole:  # without the lock: who holds the sink's, and fails, prints here
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
    """All that this process logs and prints goes through the sink from here on, to its last word.

    `printed`: else what it prints stays as it is, for who sits before it.
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
    """Log signals that would end a process by default and mean nothing to it, and go on.

    What somebody handles already, or ignores, stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _MEANINGLESS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _name_signal)


def _name_signal(number: int, _frame: FrameType | None) -> None:
    """In a thread: the signal may have come while this one was writing to the log."""
    words = "%s means nothing to this process: it goes on"
    warn = logging.getLogger("breakeven").warning
    threading.Thread(target=warn, args=(words, signal.Signals(number).name), daemon=True).start()


def _last_words(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("breakeven").critical("ended by an error", exc_info=(kind, error, trace))
