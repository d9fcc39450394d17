"""Child processes of `serve`: started, restarted with back-off, stopped by process id.

Each child is its own session: Ctrl-C reaches only `serve`, which then stops the children in order.
The kernel sends a child SIGTERM when the process that started it dies, `serve` or its fork server,
so that no child is orphaned even after `kill -9`.
"""

import asyncio
import ctypes
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gateway.clock import Clock

PR_SET_PDEATHSIG = 1
STDOUT = 1  # the descriptor
BACK_OFF_S = 0.2  # doubles per crash in a row
BACK_OFF_LIMIT_S = 10.0
NOT_STARTED = 127  # exit status that shells use
STEADY_S = 30.0  # a child that ran this long starts its back-off anew

log = logging.getLogger("breakeven.children")


@dataclass(frozen=True, slots=True)
class ChildCommand:
    name: str
    argv: Sequence[str]
    log: Path | None  # `None`: the output of the process that starts it
    environ: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()

    @property
    def module(self) -> str | None:
        """Return MODULE of `python -m MODULE WORDS...`, which has a `main`; else `None`."""
        is_module = len(self.argv) > 2 and tuple(self.argv[:2]) == (sys.executable, "-m")
        return self.argv[2] if is_module else None

    @property
    def words(self) -> Sequence[str]:
        """Return the arguments of the module, or of the program."""
        return self.argv[1 if self.module is None else 3 :]


class RunningChild(Protocol):
    """The used part of `asyncio.subprocess.Process`; `ForkedProcess` implements it, too."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def send_signal(self, signal: int) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Forks(Protocol):
    """Starter of modules by fork, while `works`; implemented by `ForkClient`."""

    @property
    def works(self) -> bool: ...
    async def start(self, command: ChildCommand, output: int) -> RunningChild: ...


class ChildProcess:
    """Keeps one process running until `stop`; `on_exit` is called at once after every exit."""

    def __init__(
        self,
        command: ChildCommand,
        *,
        clock: Clock,
        on_exit: Callable[[str, int], None],
        forks: Forks | None = None,
    ) -> None:
        self.command = command
        self._forks = forks
        self.crashes = 0
        self.lives = 0
        self.began_s = 0.0  # monotonic time of the newest start
        self._clock = clock
        self._on_exit = on_exit
        self._process: RunningChild | None = None
        self._running: asyncio.Task[Any] | None = None
        self._stopping = asyncio.Event()
        self._awake = asyncio.Event()
        self._awake.set()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Run until stopped, restarting after every death."""
        self._running = asyncio.current_task()
        while not self._stopping.is_set():
            if not self._awake.is_set():
                await self._either()
                continue
            started_s = self._clock.now_s()
            code = await self._life()
            self._on_exit(self.command.name, code)
            if self._stopping.is_set():
                return
            if not self._awake.is_set():
                continue
            self.crashes = 1 if self._clock.now_s() - started_s > STEADY_S else self.crashes + 1
            pause_s = min(BACK_OFF_S * 2 ** (self.crashes - 1), BACK_OFF_LIMIT_S)
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                continue

    async def _life(self) -> int:
        """Return the exit status; `NOT_STARTED` if the start failed, which may be temporary."""
        self.began_s = self._clock.now_s()
        try:
            process = self._process = await self._start()
        except Exception as error:  # noqa: BLE001  (a part that is silently missing is worse)
            why = error if isinstance(error, OSError) else repr(error)
            log.warning("process was not started name=%s error=%s", self.command.name, why)
            return NOT_STARTED
        self.lives += 1
        if self._stopping.is_set() or not self._awake.is_set():
            # `stop` or `pause` came while it was being started
            process.terminate()
        code = await process.wait()
        self._process = None
        return code

    async def stop(self, grace_s: float) -> None:
        """Send SIGTERM, then SIGKILL after the grace period; return when the process has ended."""
        self._stopping.set()
        if self._running is None:
            return
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
        done, _ = await asyncio.wait({self._running}, timeout=grace_s)
        if not done and self._process is not None:
            self._process.kill()
            await asyncio.wait({self._running})

    def hurry(self) -> None:
        """Send SIGINT to a child that is stopping, so that it stops waiting."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)

    def pause(self) -> None:
        """Kill the running process, and start none until `resume`."""
        self._awake.clear()
        self.restart()

    def resume(self) -> None:
        self._awake.set()

    def restart(self) -> None:
        """Kill the running process, if any; the next one starts as after any exit."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _either(self) -> None:
        """Wait until the child is resumed or stopped."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._awake, self._stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _start(self) -> RunningChild:
        forks = self._forks
        with _open_log(self.command.log) as output:
            if forks is not None and forks.works and self.command.module is not None:
                return await forks.start(self.command, output)
            return await asyncio.create_subprocess_exec(
                *self.command.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.command.environ),
                pass_fds=self.command.descriptors,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )


@contextmanager
def _open_log(log: Path | None) -> Iterator[int]:
    """Yield the descriptor of the child's output."""
    if log is None:
        yield STDOUT
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        yield file.fileno()


_LIBC = ctypes.CDLL(None, use_errno=True)  # opened ahead: between fork and exec little is safe


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """Ask the kernel to send this process the signal when the process that started it dies."""
    _LIBC.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
