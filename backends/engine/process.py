"""One life of an engine: the guard as a child process, its log, a free port."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from pathlib import Path

from backends.engine.environment import CpuOptions, variables
from backends.engine.flags import Launch

_GUARD = Path(__file__).with_name("guard.py")
# The engine gets its own drain time; what has not ended then is killed this much later.
_GRACE_AFTER_DRAIN_S = 5.0


class EngineProcess:
    """Made by `start`. `send(SIGTERM)` drains, `send(SIGHUP)` kills at once."""

    def __init__(self, guard: Process) -> None:
        self._guard = guard

    @classmethod
    async def start(
        cls, words: Sequence[str], launch: Launch, *, log: Path, cpu: CpuOptions
    ) -> "EngineProcess":
        options = CpuOptions(cpu.kv_cache_gib, cpu.omp_binding, launch.eager)
        guard = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_GUARD),
            "--parent", str(os.getpid()),
            "--grace", str(launch.drain_s + _GRACE_AFTER_DRAIN_S),
            "--log", str(log), "--", *words,
            env=variables(os.environ, flavour=launch.flavour, cpu=options),
            stdin=DEVNULL, start_new_session=True, preexec_fn=_hear_hang_ups,
        )  # fmt: skip
        return cls(guard)

    @property
    def pid(self) -> int:
        """The guard's; the engine is its child."""
        return self._guard.pid

    async def wait(self) -> int:
        """The engine's exit code, once every process of it is gone."""
        return await self._guard.wait()

    def send(self, number: signal.Signals) -> None:
        if self._guard.returncode is None:
            self._guard.send_signal(number)


def _hear_hang_ups() -> None:
    """Under `nohup` a hang-up is ignored, and so it would be until the guard is up and listens."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def log_tail(log: Path, lines: int = 3) -> str:
    """The last lines that look like a cause, on one line, for a status."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - (1 << 16)))
            text = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return "no log"
    causes = [line for line in text if "Error" in line or "error" in line] or text
    return " | ".join(line.strip()[-300:] for line in causes[-lines:])
