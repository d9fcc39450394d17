"""Supervisor of one engine replica: start, warm-up, health checks, drain and restart.

A replica is serving only after its own process has answered a real request. The first request
compiles and allocates, and a port that answers `/health` may still fail it. The port must be free
at each start, and the kernel must report our process as its only listener; otherwise the replica is
blocked. After crashes the delay doubles each time. A new process starts only when the last process
of the old one is gone, because memory and ports are free only then. Engines that share a GPU load
one at a time (`turns`). An adapter that does not fit, or that ended a start, is left out, and the
status names it. Every change of state is published.
"""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import httpx

from backends.engine import adapters, ports
from backends.engine.environment import CpuOptions
from backends.engine.flags import BadFlags, EngineLaunch
from backends.engine.load_order import GpuLoadQueue
from backends.engine.process import EngineProcess, free_port, log_tail
from backends.engine.program import VLLM_PROGRAM, EngineProgram
from backends.engine.stall import stalled
from backends.engine.warmup import WarmUpFailed, answers_health, warm_up
from backends.plain_http import make_plain_client


class EnginePhase(StrEnum):
    STARTING = "starting"  # before the process exists
    LOADING = "loading"  # the process runs, its port does not answer
    WARMING = "warming"  # the first real request
    SERVING = "serving"
    DRAINING = "draining"
    BACKING_OFF = "backing_off"  # crashed; waits before the next try
    BLOCKED = "blocked"  # another process has its port
    STOPPED = "stopped"
    RESTING = "resting"  # paused until `resume`


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Published state of a supervised engine. `base_url` ends in `/v1`; `reason` is text."""

    name: str
    phase: EnginePhase
    base_url: str | None = None
    pid: int | None = None
    restarts: int = 0
    crashes_in_a_row: int = 0
    retry_in_s: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SupervisorLimits:
    start_s: float = 900.0
    poll_s: float = 0.25
    watch_s: float = 2.0
    hung_s: float = 60.0
    stalled_s: float = 120.0  # requests wait and no counter changes
    backoff_first_s: float = 1.0
    backoff_most_s: float = 60.0
    unserved_s: float = 3.0  # time to end if it has not served yet
    settled_s: float = 60.0  # serving this long resets the crash count


def is_anyone_waiting() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """Engine to supervise. `port` 0 chooses a free port at every start.

    `port_setting` names the setting of the port for error messages. `gpus` are the GPUs whose
    memory the engine takes. `turns` is shared by all engines of a host. `waits` returns whether a
    request waits for this engine.
    """

    name: str
    launch: EngineLaunch
    log: Path
    port: int = 0
    port_setting: str = "another port"
    cpu: CpuOptions = field(default_factory=CpuOptions)
    limits: SupervisorLimits = field(default_factory=SupervisorLimits)
    gpus: frozenset[str] = frozenset()
    turns: GpuLoadQueue = field(default_factory=GpuLoadQueue)
    waits: Callable[[], bool] = is_anyone_waiting
    program: EngineProgram = VLLM_PROGRAM


class Supervisor:
    """Supervisor of one engine. Call `run` once, as a task; `stop` ends the engine and `run`."""

    def __init__(self, spec: EngineSpec, publish: Callable[[EngineStatus], None]) -> None:
        self._spec = spec
        self._publish = publish
        self._status = EngineStatus(spec.name, EnginePhase.STARTING)
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._restart = asyncio.Event()
        self._awake = asyncio.Event()
        self._awake.set()
        self._ended = asyncio.Event()
        self._refused: dict[str, str] = {}  # adapters that ended a start, and why
        self._left_out: dict[str, str] = {}  # adapters not loaded now, and why

    @property
    def status(self) -> EngineStatus:
        return self._status

    async def run(self) -> None:
        """Run the engine, restarting it after crashes, until `stop` is called.

        Raises `BadFlags` when the engine can never start with these flags.
        """
        try:
            known = await asyncio.to_thread(
                self._spec.program.known_flags, self._spec.launch.environment
            )
            async with make_plain_client() as client:
                while not self._stop.is_set():
                    if not self._awake.is_set():
                        self._set(EnginePhase.RESTING, reason="", pid=None, base_url=None)
                        await _either(self._stop.wait(), self._awake.wait())
                    else:
                        await self._run_life(known, client)
        except BadFlags as error:
            self._set(EnginePhase.STOPPED, reason=str(error), pid=None, base_url=None)
            raise
        finally:
            self._ended.set()
        self._set(EnginePhase.STOPPED, reason="asked to stop", pid=None, base_url=None)

    async def stop(self) -> None:
        """Drain the engine, stop it, and wait until its last process has ended."""
        self._stop.set()
        await self._ended.wait()

    def restart(self) -> None:
        """Request a drain and restart; returns at once.

        A rolling restart calls this for one replica at a time. The new process loads all adapters
        again, since a broken one may have been repaired.
        """
        self._refused.clear()
        self._restart.set()

    def pause(self) -> None:
        """Request a drain; the engine then stays stopped until `resume`. Returns at once."""
        self._awake.clear()
        self._restart.set()

    def resume(self) -> None:
        """Request a start if the engine is paused. Returns at once."""
        if not self._awake.is_set():
            self._restart.clear()
            self._refused.clear()
            self._awake.set()

    async def wait_for(self, phase: EnginePhase, timeout_s: float) -> EngineStatus:
        """Wait until the engine is in `phase`. Return its status. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout_s):
            while self._status.phase is not phase:
                self._changed.clear()
                await self._changed.wait()
        return self._status

    async def _run_life(self, known: frozenset[str], client: httpx.AsyncClient) -> None:
        """Run the engine's process once, then wait for the back-off delay after a crash.

        The process is not started while another one has its port.
        """
        taken, reason, served_s = await self._port_conflict(self._spec.port), "", 0.0
        if self._stop.is_set():
            return
        lives = taken is None and await self._await_load_turn()
        if lives:
            try:
                reason, served_s = await self._live(known, client)
            except (OSError, adapters.BadAdapter) as error:
                # A full disk, no free process, a removed folder: a later start may succeed.
                reason = f"could not be started: {error}"
            finally:
                self._spec.turns.release(self._spec.name)
        crashed = not (self._stop.is_set() or self._restart.is_set())
        self._restart.clear()
        if self._stop.is_set():
            return
        row = 0
        if crashed:
            row = 1 if served_s > self._spec.limits.settled_s else self._status.crashes_in_a_row + 1
        restarts = self._status.restarts + lives
        if not crashed:
            self._set(
                EnginePhase.STARTING, reason=reason, restarts=restarts, crashes_in_a_row=0,
                pid=None, base_url=None,
            )  # fmt: skip
            return
        limits = self._spec.limits
        delay_s = min(limits.backoff_first_s * 2.0 ** (row - 1), limits.backoff_most_s)
        self._set(
            EnginePhase.BLOCKED if taken else EnginePhase.BACKING_OFF, reason=taken or reason,
            restarts=restarts, crashes_in_a_row=row, retry_in_s=delay_s, pid=None, base_url=None,
        )  # fmt: skip
        await _either(self._stop.wait(), self._restart.wait(), asyncio.sleep(delay_s))

    async def _await_load_turn(self) -> bool:
        """Wait until no other engine loads into its GPUs. Return `False` if asked to end before."""
        spec, waits = self._spec, False
        while not self._is_ending():
            if spec.turns.acquire(spec.name, spec.gpus):
                return True
            if not waits:
                self._set(EnginePhase.STARTING, reason="another engine loads into its GPU first")
                waits = True
            await _either(
                self._stop.wait(), self._restart.wait(), asyncio.sleep(spec.limits.poll_s)
            )
        return False

    async def _live(self, known: frozenset[str], client: httpx.AsyncClient) -> tuple[str, float]:
        """Run one process tree to its end. Return the reason and the seconds served."""
        spec = self._spec
        port = spec.port or free_port()
        self._set(EnginePhase.STARTING, reason="", retry_in_s=None)
        launch = await self._launch()
        process = await EngineProcess.start(
            spec.program.command(launch, known, port), launch, log=spec.log, cpu=spec.cpu
        )
        exited = asyncio.ensure_future(process.wait())
        base_url = f"http://127.0.0.1:{port}/v1"
        self._set(EnginePhase.LOADING, pid=process.pid, base_url=base_url)
        loop = asyncio.get_running_loop()
        served_since: float | None = None
        try:
            problem = await _first(
                exited, self._stop.wait(), self._restart.wait(), self._ready(port, client)
            )
            if problem is None and not exited.done() and not self._is_ending():
                served_since = loop.time()
                spec.turns.release(spec.name)
                self._set(EnginePhase.SERVING, reason=self._without())
                problem = await _first(
                    exited, self._stop.wait(), self._restart.wait(), self._watch(port, client)
                )
            if not exited.done():
                reason = problem or ("asked to stop" if self._stop.is_set() else "asked to restart")
                self._set(EnginePhase.DRAINING, reason=reason)
                process.send(signal.SIGTERM if problem is None else signal.SIGHUP)
                if served_since is None:  # no request is running: nothing to drain
                    await asyncio.wait([exited], timeout=spec.limits.unserved_s)
                    process.send(signal.SIGHUP)
                await exited
            else:
                problem = process.cause(exited.result())
                if served_since is None:
                    problem = self._at_an_adapter(process, launch) or problem
        finally:
            if not exited.done():  # cancelled: do not wait for a drain
                process.send(signal.SIGHUP)
                await asyncio.shield(exited)
        return problem or "asked", loop.time() - served_since if served_since else 0.0

    async def _launch(self) -> EngineLaunch:
        """Return the launch without the adapters that do not fit or that ended a start."""
        launch = self._spec.launch
        fit, self._left_out = await asyncio.to_thread(
            adapters.split_fitting, launch.adapters, launch.model
        )
        self._left_out |= {name: why for name, why in self._refused.items() if name in fit}
        kept = {name: folder for name, folder in fit.items() if name not in self._left_out}
        return replace(launch, adapters=kept)

    def _at_an_adapter(self, process: EngineProcess, launch: EngineLaunch) -> str | None:
        """Return the reason if an adapter ended the start, and leave it out of the next one."""
        name = self._spec.program.refused_adapter(process.log_excerpt(), launch.adapters)
        if name is None:
            return None
        why = log_tail(self._spec.log, lines=1)
        self._refused[name] = f"vLLM could not load it: {why}"
        return f"the adapter `{name}` could not be loaded: {why}"

    def _without(self) -> str:
        told = (f"without the adapter `{name}`: {why}" for name, why in self._left_out.items())
        return " | ".join(told)

    def _is_ending(self) -> bool:
        return self._stop.is_set() or self._restart.is_set()

    async def _ready(self, port: int, client: httpx.AsyncClient) -> str | None:
        """Wait until our process has answered a real request. Return the problem, or `None`."""
        launch, limits, pid = self._spec.launch, self._spec.limits, self._status.pid
        base_url = f"http://127.0.0.1:{port}/v1"
        assert pid is not None, "its process was started"
        try:
            async with asyncio.timeout(limits.start_s):
                while not (
                    await asyncio.to_thread(ports.is_served_by, port, pid)
                    and await answers_health(client, base_url)
                ):
                    if taken := await self._port_conflict(port):
                        return taken
                    await asyncio.sleep(limits.poll_s)
                self._set(EnginePhase.WARMING)
                await warm_up(client, base_url, launch.served_name, launch.kind)
        except TimeoutError:
            return f"not ready after {limits.start_s:.0f} s: {log_tail(self._spec.log)}"
        except WarmUpFailed as error:
            return f"the first request failed: {error}"
        return await self._port_conflict(port)

    async def _watch(self, port: int, client: httpx.AsyncClient) -> str:
        """Wait until the engine, still running, no longer answers or works. Return the reason."""
        spec = self._spec
        base_url = f"http://127.0.0.1:{port}/v1"
        stall = stalled(client, base_url, spec.launch, self._is_waited_for, spec.limits.stalled_s)
        looks = [asyncio.ensure_future(self._deaf(port, client)), asyncio.ensure_future(stall)]
        try:
            done, _ = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for look in looks:
                look.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    def _is_waited_for(self) -> bool:
        """Return whether requests wait. `False` while another process may answer on its port."""
        return self._status.phase is EnginePhase.SERVING and self._spec.waits()

    async def _deaf(self, port: int, client: httpx.AsyncClient) -> str:
        """Wait until the running engine, alone on its port, does not answer. Return the reason."""
        limits = self._spec.limits
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while loop.time() - seen < limits.hung_s:
            await asyncio.sleep(limits.watch_s)
            taken = await self._port_conflict(port)
            if taken or self._status.phase is EnginePhase.BLOCKED:
                words = taken or self._without()
                self._set(EnginePhase.BLOCKED if taken else EnginePhase.SERVING, reason=words)
            if taken or await answers_health(client, f"http://127.0.0.1:{port}/v1"):
                seen = loop.time()
        return f"no answer for {limits.hung_s:.0f} s"

    async def _port_conflict(self, port: int) -> str | None:
        """Return a sentence that names another listener on the port and the remedy, or `None`."""
        who = (
            await asyncio.to_thread(ports.other_listener, port, self._status.pid) if port else None
        )
        if who is None:
            return None
        return f"port {port} is taken by {who}: end it, or set {self._spec.port_setting}"

    def _set(self, phase: EnginePhase, **changes: object) -> None:
        self._status = replace(self._status, phase=phase, **changes)  # type: ignore[arg-type]  # (names are checked by replace)
        self._changed.set()
        self._publish(self._status)


async def _first(*awaitables: object) -> str | None:
    """Wait for the first awaitable to finish. Return the last one's result if it finished.

    All others are cancelled, except the future given first: it is the end of the process.
    """
    keep, *others = [asyncio.ensure_future(each) for each in awaitables]  # type: ignore[call-overload]  # (any awaitable)
    try:
        await asyncio.wait({keep, *others}, return_when=asyncio.FIRST_COMPLETED)
        last = others[-1]
        return last.result() if last.done() and not keep.done() else None
    finally:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def _either(*awaitables: object) -> None:
    tasks = [asyncio.ensure_future(each) for each in awaitables]  # type: ignore[call-overload]  # (any awaitable)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
