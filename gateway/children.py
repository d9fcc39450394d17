"""Processes that live and die with `serve`: started, restarted with back-off, ended by id.

Each child is its own session (Ctrl-C reaches the parent alone, which then ends the children in
order) and asks the kernel for SIGTERM when its parent dies, so nothing is orphaned even by
`kill -9` of the parent.
"""

import asyncio
import ctypes
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.clock import Clock

PR_SET_PDEATHSIG = 1
BACK_OFF_S = 0.2  # doubles per crash in a row
BACK_OFF_LIMIT_S = 10.0
STEADY_S = 30.0  # a child that lived this long has forgotten its crashes


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    argv: Sequence[str]
    log: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()


class Child:
    """Keeps one process running until `stop`; `on_exit` hears of every death at once."""

    def __init__(
        self,
        command: Command,
        *,
        clock: Clock,
        on_exit: Callable[[str, int], None],
    ) -> None:
        self.command = command
        self.crashes = 0
        self._clock = clock
        self._on_exit = on_exit
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Run until stopped, restarting after every death."""
        while not self._stopping.is_set():
            started_s = self._clock.now_s()
            self._process = await self._start()
            code = await self._process.wait()
            self._process = None
            self._on_exit(self.command.name, code)
            if self._stopping.is_set():
                return
            self.crashes = 1 if self._clock.now_s() - started_s > STEADY_S else self.crashes + 1
            pause_s = min(BACK_OFF_S * 2 ** (self.crashes - 1), BACK_OFF_LIMIT_S)
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                continue

    async def stop(self, grace_s: float) -> None:
        """SIGTERM, then SIGKILL after the grace period; returns when the process is gone."""
        self._stopping.set()
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), grace_s)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        self.command.log.parent.mkdir(parents=True, exist_ok=True)
        with self.command.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self.command.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.command.environ),
                pass_fds=self.command.descriptors,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )


def die_with_parent() -> None:
    """Ask the kernel to end this process when the one that started it dies."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
