"""Drift process: `python -m gateway.telemetry.drift.sampling --config FILE ...`.

Samples are sent to the pool and to its baseline through the gateway with the key of a named
account, so each has a ledger row, a price and a team. They are sent only while the engines of both
are idle, at most at the pool's hourly cap, and dropped without an idle moment in time. Prompts and
answers stay in memory until they are compared; only counts are kept. Both models score each token
of the baseline's greedy answer (see `engine eval`). An interval of the share of differing tokens
over the last `window` samples above the limit of the pool's risk class is drift.
"""

import asyncio
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from backends.engine.evalclient import EvalModel, NoAnswer
from backends.engine.evalfigures import (
    LIMITS,
    PromptComparison,
    compare_forced,
    compare_free,
    figures,
    verdict,
)
from gateway.clock import Clock
from gateway.config.schema_upkeep import SamplingSection
from gateway.config.settings import Settings, resolve_model
from gateway.control.admin.enginehost import EngineHost
from gateway.fleet.shared_load import SharedLoadTable
from gateway.process import WHERE_WORKERS_LISTEN, start_process
from gateway.runtime import Runtime
from gateway.telemetry.drift.drawing import SOCKET, DriftSample
from ledger.fleet.driftnotes import DriftNote, write_drift
from ledger.unixsocket import short_path

PLACES = 64  # waiting samples of one pool; the oldest is dropped
LOOK_S = 0.2
PATIENCE_S = 300.0  # for an idle moment
TIMEOUT_S = 120.0
HOUR_S = 3600.0
LEAST = 20  # comparisons before a result is published
_MESSAGES = msgspec.json.Decoder(list[dict[str, Any]])
_DRAWN = msgspec.json.Decoder(DriftSample)

log = logging.getLogger("breakeven.drift")


@dataclass
class SampledPool:
    """State of one pool: waiting samples, request times, recent comparisons."""

    name: str
    rule: SamplingSection
    rows: tuple[int, ...]  # rows of engines that must be idle: its own, and the baseline's
    window: deque[PromptComparison]
    waiting: deque[DriftSample] = field(default_factory=lambda: deque(maxlen=PLACES))
    asked_s: deque[float] = field(default_factory=deque)
    compared: int = 0
    let_go: int = 0
    failed: int = 0

    def add_sample(self, drawn: DriftSample) -> None:
        self.let_go += len(self.waiting) == PLACES
        self.waiting.append(drawn)

    def can_request(self, now_s: float) -> bool:
        """Return whether the cap of the last hour allows another request."""
        while self.asked_s and now_s - self.asked_s[0] >= HOUR_S:
            self.asked_s.popleft()
        return len(self.asked_s) < self.rule.per_hour

    def note(self, at_us: int) -> DriftNote:
        limit = LIMITS[self.rule.risk]
        found = figures(self.window) if len(self.window) >= LEAST else None
        judged = None if found is None else verdict(found, limit)
        return DriftNote(
            pool=self.name,
            baseline=self.rule.baseline,
            at_us=at_us,
            limit=limit,
            compared=self.compared,
            in_window=len(self.window),
            let_go=self.let_go,
            failed=self.failed,
            differ=None if found is None else round(found.disagreement.value, 6),
            low=None if found is None else round(found.disagreement.low, 6),
            high=None if found is None else round(found.disagreement.high, 6),
            kl=None if found is None or found.kl is None else round(found.kl.value, 6),
            drifts=judged is not None and judged.state == "fails",
        )


class DriftSampler:
    """Sampler that compares conversations while the engines of a pool are idle."""

    def __init__(
        self, settings: Settings, runtime: Runtime, host: EngineHost, url: str, clock: Clock
    ) -> None:
        self._url = url
        self._run_dir = runtime.run_dir
        self._host = host
        self._clock = clock
        self.watched = {pool.name: pool for pool in sampled_pools(settings, runtime)}

    def receive_sample(self, news: bytes) -> None:
        """Receive a worker's sample; an unreadable one is dropped without a message."""
        with suppress(msgspec.DecodeError):
            drawn = _DRAWN.decode(news)
            if pool := self.watched.get(drawn.pool):
                pool.add_sample(drawn)

    def idle(self, sampled_pool: SampledPool) -> bool:
        return all(
            seen.in_flight == 0 and not seen.state.running and not seen.state.waiting
            for seen in map(self._host.snapshot, sampled_pool.rows)
        )

    async def run(self, client: httpx.AsyncClient, keys: Mapping[str, str]) -> None:
        """Run all pools in parallel: a pool that is never idle does not delay others."""
        self.publish_drift()
        async with asyncio.TaskGroup() as group:
            for pool in self.watched.values():
                group.create_task(self._run_pool(pool, client, keys[pool.name]))

    async def _run_pool(
        self, sampled_pool: SampledPool, client: httpx.AsyncClient, key: str
    ) -> None:
        while True:
            if sampled_pool.waiting and sampled_pool.can_request(self._clock.now_s()):
                await self._compare_sample(sampled_pool, client, key)
            else:
                await asyncio.sleep(LOOK_S)

    async def _compare_sample(
        self, sampled_pool: SampledPool, client: httpx.AsyncClient, key: str
    ) -> None:
        drawn = sampled_pool.waiting.popleft()
        sampled_pool.asked_s.append(self._clock.now_s())
        try:
            async with asyncio.timeout(PATIENCE_S):
                comparison = await self._compare_answers(sampled_pool, drawn, client, key)
        except TimeoutError:
            sampled_pool.let_go += 1
        except (NoAnswer, LookupError, ValueError, TypeError) as error:
            sampled_pool.failed += 1  # the error text may contain the prompt
            log.warning(
                "a drift sample failed pool=%s error=%s", sampled_pool.name, type(error).__name__
            )
        else:
            sampled_pool.compared += 1
            if comparison.tokens:
                sampled_pool.window.append(comparison)
        self.publish_drift()

    async def _compare_answers(
        self, sampled_pool: SampledPool, drawn: DriftSample, client: httpx.AsyncClient, key: str
    ) -> PromptComparison:
        headers = {"authorization": f"Bearer {key}"}
        sides = [
            EvalModel(client, self._url, model, sampled_pool.rule.tokens, headers)
            for model in (sampled_pool.rule.baseline, sampled_pool.rule.model)
        ]
        messages = _MESSAGES.decode(drawn.messages)
        answers = []
        for side in sides:
            await self._wait_until_idle(sampled_pool)
            answers.append(await side.answer(messages))
        first, second = answers
        if first.ids and second.ids and first.ids[0] == second.ids[0]:
            thoughts = []
            for side in sides:
                await self._wait_until_idle(sampled_pool)
                thoughts.append(await side.logprobs_of(first.ids))
            if thoughts[0] and thoughts[1]:
                return compare_forced(thoughts[0], thoughts[1])
        return compare_free(first.told, second.told)

    async def _wait_until_idle(self, sampled_pool: SampledPool) -> None:
        while not self.idle(sampled_pool):  # noqa: ASYNC110  (other processes write what is looked at)
            await asyncio.sleep(LOOK_S)

    def publish_drift(self) -> None:
        at_us = self._clock.wall_us()
        write_drift(self._run_dir, [pool.note(at_us) for pool in self.watched.values()])


def sampled_pools(settings: Settings, runtime: Runtime) -> list[SampledPool]:
    found = []
    for name, pool in settings.pools.items():
        rule = pool.sampling
        if rule is None:
            continue
        pools = {name}
        baseline = resolve_model(settings, rule.baseline)
        if baseline is not None:
            pools |= {target[5:] for target in baseline[1].reachable}
        rows = tuple(row for row, seat in enumerate(runtime.engines) if seat.pool in pools)
        found.append(SampledPool(name, rule, rows, deque(maxlen=rule.window)))
    return found


async def _serve(sampler: DriftSampler, run_dir: Path, keys: Mapping[str, str]) -> None:
    address = run_dir / SOCKET
    address.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    with short_path(address) as name:
        listener.bind(name)
    address.chmod(0o600)
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        with suppress(BlockingIOError):
            while True:
                sampler.receive_sample(listener.recv(1 << 18))

    loop.add_reader(listener, on_readable)
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as client:
        await sampler.run(client, keys)


def main(arguments: Sequence[str] | None = None) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, runtime, _, given = start_process(
        "gateway.telemetry.drift.sampling",
        "drift",
        __doc__,
        arguments,
        address=WHERE_WORKERS_LISTEN,
    )
    board, clock = SharedLoadTable(runtime.run_dir / "board", runtime.layout), Clock()
    host = EngineHost(settings, runtime, board)
    sampler = DriftSampler(settings, runtime, host, f"http://{given.address}/v1", clock)
    keys = {
        name: os.environ.get(pool.rule.key_env, "").strip()
        for name, pool in sampler.watched.items()
    }
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(sampler, runtime.run_dir, keys))


if __name__ == "__main__":
    main()
