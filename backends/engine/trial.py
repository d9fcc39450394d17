"""Server for one measurement: start, load by `engine bench`'s client, complete stop.

Every server of a ladder or a flag search runs under the same guard as the engines of `serve`, so
that no process remains. After it has stopped, its GPU memory is awaited.
"""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from backends.engine.benchclient import BenchClient, BenchTarget
from backends.engine.benchfigures import BenchSlo, RunSummary
from backends.engine.benchload import BenchPrompts, LoadProfile, PromptShape
from backends.engine.benchreport import BenchRun, run_of
from backends.engine.environment import CpuOptions
from backends.engine.flags import EngineLaunch, command, known_flags
from backends.engine.gpus import bytes_in_use
from backends.engine.guard import descendants
from backends.engine.process import EngineProcess, free_port
from backends.engine.warmup import WarmUpFailed, answers_health, warm_up
from backends.http import HttpClient, PoolLimits
from backends.openai import OpenAIBackend
from backends.plain_http import make_plain_client

CONNECTIONS = 4096
DRAIN_S = 2.0
POLL_S = 0.25
FREED_S = 30.0
FREED_BYTES = 512 << 20
END_S = 30.0


class DidNotServe(Exception):
    """A server ended or failed to answer before it could be measured."""


@dataclass(frozen=True, slots=True)
class ServerTrial:
    """Server to start. `words` returns the command for a port; `launch` sets its environment."""

    launch: EngineLaunch
    words: Callable[[int], Sequence[str]]
    log: Path
    start_limit_s: float = 900.0
    cpu: CpuOptions = field(default_factory=CpuOptions)


async def make_vllm_trial(
    launch: EngineLaunch, log: Path, start_limit_s: float, cpu: CpuOptions
) -> ServerTrial:
    """Return a trial of vLLM with the launch's flags. Raises `BadFlags`."""
    known = await asyncio.to_thread(known_flags, launch.environment)
    return ServerTrial(launch, partial(command, launch, known), log, start_limit_s, cpu)


def file_name(name: str) -> str:
    """Return a name with all characters but letters and digits replaced by dashes."""
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")


@dataclass(frozen=True, slots=True)
class RunningServer:
    base_url: str
    model: str
    start_s: float
    pid: int
    memory_before: int

    def memory_bytes(self) -> int:
        """Return the GPU memory used since the start; without a GPU, the processes' memory."""
        gpus = bytes_in_use()
        if gpus is None:
            return sum(_held(pid) for pid in descendants(self.pid))
        return gpus - self.memory_before


@asynccontextmanager
async def serving(trial: ServerTrial) -> AsyncIterator[RunningServer]:
    """Start a server, yield it when it has answered a request, and stop it afterwards.

    Raises `DidNotServe` with the cause from its log.
    """
    port, before = free_port(), await asyncio.to_thread(bytes_in_use) or 0
    began = time.monotonic()
    process = await EngineProcess.start(
        trial.words(port), trial.launch, log=trial.log, cpu=trial.cpu
    )
    ended = asyncio.ensure_future(process.wait())
    try:
        base_url = f"http://127.0.0.1:{port}/v1"
        ready = asyncio.ensure_future(_ready(base_url, trial))
        try:
            await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise DidNotServe(process.cause(ended.result()))
            await ready
        finally:
            ready.cancel()
        seconds = time.monotonic() - began
        yield RunningServer(base_url, trial.launch.served_name, seconds, process.pid, before)
    finally:
        process.send(signal.SIGTERM)
        await _either(ended, END_S)
        process.send(signal.SIGHUP)
        await asyncio.shield(ended)
        await _wait_for_memory(before)


async def _ready(base_url: str, trial: ServerTrial) -> None:
    try:
        async with (
            asyncio.timeout(trial.start_limit_s),
            make_plain_client() as client,
        ):
            while not await answers_health(client, base_url):  # noqa: ASYNC110  (another's answer)
                await asyncio.sleep(POLL_S)
            await warm_up(client, base_url, trial.launch.served_name, trial.launch.kind)
    except TimeoutError as error:
        raise DidNotServe(f"not ready after {trial.start_limit_s:.0f} s") from error
    except WarmUpFailed as error:
        raise DidNotServe(f"the first request failed: {error}") from error


async def _either(ended: asyncio.Future[int], limit_s: float) -> None:
    await asyncio.wait({ended}, timeout=limit_s)


async def _wait_for_memory(before: int) -> None:
    """Wait until the GPU's memory is free: drivers release it after the process has ended."""
    deadline_s = time.monotonic() + FREED_S
    while time.monotonic() < deadline_s:
        used = await asyncio.to_thread(bytes_in_use)
        if used is None or used <= before + FREED_BYTES:
            return
        await asyncio.sleep(POLL_S)


class TrialMeter:
    """Load runs against one server, sent by the client of `engine bench`."""

    def __init__(self, client: BenchClient, prompts: BenchPrompts, promise: BenchSlo) -> None:
        self._client, self._prompts, self._promise = client, prompts, promise

    async def run(self, loop: LoadProfile) -> BenchRun:
        return run_of(loop, await self._client.run(loop, self._prompts), self._promise)

    async def point(self, loop: LoadProfile) -> RunSummary:
        """Run a load and return its summary. Raises `DidNotServe` when a request fails."""
        run = await self.run(loop)
        failed = [sample.error for sample in run.samples if sample.error is not None]
        if failed or run.point is None:
            raise DidNotServe(f"{len(failed)} of {len(run.samples)} requests failed: {failed[:1]}")
        return run.point


@asynccontextmanager
async def meter(
    of: RunningServer, shape: PromptShape, promise: BenchSlo, *, seed: int = 0
) -> AsyncIterator[TrialMeter]:
    """Yield a meter for a server, with calibrated prompts.

    Raises `BackendError` when the server does not answer the calibration.
    """
    rng = random.Random(seed)  # noqa: S311  (chance that can be repeated, no secret)
    http = HttpClient(PoolLimits(connections=CONNECTIONS, waiters=CONNECTIONS))
    try:
        client = BenchClient(
            OpenAIBackend(of.base_url, client=http), BenchTarget(of.model, chat=False)
        )
        yield TrialMeter(client, await client.calibrate(shape.shared, rng), promise)
    finally:
        await http.aclose()


def _held(pid: int) -> int:
    """Return a process's memory in bytes (its proportional share), or 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))
