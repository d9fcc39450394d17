"""Process of an engine under its guard: start, signals, cause of its end, log, free port."""

import asyncio
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from backends.engine.environment import CpuOptions, variables
from backends.engine.flags import EngineLaunch
from backends.engine.leftovers import kill_leftovers
from backends.engine.sockets import VARIABLE, make_sockets, remove_sockets

_GUARD = Path(__file__).with_name("guard.py")
# Seconds after the engine's drain time until its remaining processes are killed.
_GRACE_AFTER_DRAIN_S = 5.0
_SAID_BYTES = 1 << 19
_LINE = 400  # characters of a cause
_CAUSE = re.compile(r"\b\w*(Error|Exception)\b|\b[Ee]rror\b|\bERROR\b|\bCRITICAL\b|\bFATAL\b")
_NO_CAUSE = re.compile(r"\b(WARNING|INFO|DEBUG|\w*Warning)\b")
# Each vLLM process fails when its child does, with a traceback that refers to the child's.
_ELSEWHERE = re.compile(r"\broot cause\b|\braise \w+\(")
_NAMED = re.compile(
    r"\b[\w.]*(?:Error|Exception): .*|(?:\bCRITICAL|\bFATAL|\[Errno \d+\]|\bValue error,).*"
)


class EngineProcess:
    """Running engine, created by `start`. `send(SIGTERM)` drains it, `send(SIGHUP)` kills it."""

    def __init__(self, guard: Process, log: Path, log_from: int) -> None:
        self._guard = guard
        self._log = log
        self._log_from = log_from

    @classmethod
    async def start(
        cls, words: Sequence[str], launch: EngineLaunch, *, log: Path, cpu: CpuOptions
    ) -> "EngineProcess":
        await asyncio.to_thread(kill_leftovers, tree_of(log))  # of an earlier, crashed guard
        log_from = await asyncio.to_thread(_size, log)
        options = replace(cpu, eager=launch.eager)
        environ = variables(os.environ, flavour=launch.flavour, cpu=options)
        if launch.gpus:
            environ["CUDA_VISIBLE_DEVICES"] = ",".join(launch.gpus)
        if launch.traces is not None:
            environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"  # the default is gRPC
            environ["OTEL_SERVICE_NAME"] = f"vllm/{launch.served_name}"
        environ |= dict(launch.environ)
        environ[VARIABLE] = str(await asyncio.to_thread(make_sockets, log))
        guard = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_GUARD),
            "--parent", str(os.getpid()),
            "--grace", str(launch.drain_s + _GRACE_AFTER_DRAIN_S),
            "--log", str(log), "--tree", str(tree_of(log)), "--", *words,
            env=environ, stdin=DEVNULL, start_new_session=True, preexec_fn=_restore_sighup,
        )  # fmt: skip
        return cls(guard, log, log_from)

    @property
    def pid(self) -> int:
        """Return the guard's process id; the engine is its child."""
        return self._guard.pid

    async def wait(self) -> int:
        """Wait until all processes of the engine are gone. Return its exit code."""
        code = await self._guard.wait()
        await asyncio.to_thread(kill_leftovers, tree_of(self._log), died_now=True)
        await asyncio.to_thread(remove_sockets, self._log)
        return code

    def log_excerpt(self) -> str:
        """Return the end of the log that this process wrote, at most 512 KiB."""
        return _read_written(self._log, self._log_from, _SAID_BYTES)

    def cause(self, code: int) -> str:
        """Return how the process ended, with the error from its log. `code` is its exit code."""
        number = -code if code < 0 else code - 128
        if number <= 0:
            return f"exited with {code}: {log_tail(self._log, since=self._log_from)}"
        name = signal.strsignal(number) or "unknown"
        ended = f"{'its guard was ' if code < 0 else ''}ended by signal {number} ({name})"
        if number == signal.SIGKILL:  # a killed process logs no cause
            return ended
        told = log_tail(self._log, since=self._log_from, errors_only=True)
        return f"{ended}: {told}" if told else ended

    def send(self, number: signal.Signals) -> None:
        if self._guard.returncode is None:
            self._guard.send_signal(number)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _restore_sighup() -> None:
    """Restore SIGHUP's default: `nohup` ignores it, and the guard sets its handler later."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def tree_of(log: Path) -> Path:
    """Return the guard's record of the engine's processes, beside its log."""
    return log.with_name(log.name + ".tree")


def _read_written(log: Path, since: int, most: int) -> str:
    with log.open("rb") as file:
        size = log.stat().st_size
        start = since if since <= size else 0  # the log was rotated
        file.seek(max(start, size - most))
        return file.read().decode("utf-8", "replace")


def log_tail(log: Path, lines: int = 3, *, since: int = 0, errors_only: bool = False) -> str:
    """Return the last log lines that look like a cause, joined to one line.

    `since` is the byte offset at which the process began to write. With `errors_only` the result is
    empty if no line names an error.
    """
    try:
        text = _read_written(log, since, 1 << 16).splitlines()
    except OSError:
        return "no log"
    causes = [line for line in text if _CAUSE.search(line) and not _NO_CAUSE.search(line)]
    if not causes and not errors_only:
        causes = text
    causes = [line for line in causes if not _ELSEWHERE.search(line)] or causes
    # Several ranks log the same cause.
    named = dict.fromkeys(found[0] for line in causes if (found := _NAMED.search(line)))
    if named:
        return " | ".join(_short(line.strip()) for line in list(named)[-lines:])
    return " | ".join(line.strip()[-300:] for line in causes[-lines:])


def _short(line: str) -> str:
    """Shorten a log line in its middle. The beginning names the error, the end its cause."""
    return line if len(line) <= _LINE else f"{line[: _LINE // 2]} ... {line[-_LINE // 2 :]}"
