"""Step models of engines: measured once at warm-up, then stored.

A simulated engine's model is its profile's. A real engine is measured over its HTTP API the first
time it is seen; the fit is stored next to the model for this version, flags and hardware. An engine
for embeddings, rankings or transcripts has no decoding that clients wait for token by token: its
model is a constant and a reading rate, from a few requests.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from backends.engine import profiles
from backends.engine.probes import ProbeCost, ProbeError, Workload
from backends.engine.profile import SMALL, StepFit, profile
from backends.engine.tasks import TASKS, EngineTask, task_of
from backends.engines import ENGINE_KINDS
from backends.metrics import parse
from backends.simulator.profiles import PROFILES
from backends.simulator.shapefile import ShapeFileError, profile_of
from backends.stepmodel import FittedStepModel
from gateway.config.credentials import engine_headers
from gateway.config.settings import EngineSection, Settings
from gateway.fleet.measurements import EngineMeasurement, Measure
from gateway.kinds.billable_units import AUDIO_MS_PER_TOKEN
from gateway.runtime import EngineReplica

DEFAULT_SLO_MS = (1000.0, 50.0)  # TTFT and TPOT of the capacity when no policy promises any
READING_ROUNDS = 3
LEAST_SLOPE = 0.25  # minimum share of the longest input's time due to its tokens
REQUEST_TIMEOUT_S = 30.0

log = logging.getLogger("breakeven.stepfits")


@dataclass(frozen=True, slots=True)
class EngineFit:
    step: FittedStepModel
    version: str | None
    source: str
    made: StepFit | None = None  # if it was measured now
    read: ProbeCost | None = None  # likewise, for an engine that only reads

    @property
    def spent(self) -> ProbeCost:
        """Return the requests that were sent to the engine for the measurement."""
        if self.made is not None:
            return self.made.spent
        return self.read or ProbeCost()


class StepFitStore:
    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings, self._environ = settings, environ
        self._kept = settings.state / "profiles"  # a model's own folder may be read-only

    async def measure_model(self, seat: EngineReplica) -> EngineFit | None:
        """Return the engine's step model, or `None` if it cannot be measured now."""
        engine = self._settings.pools[seat.pool].engine
        timeout = httpx.Timeout(REQUEST_TIMEOUT_S)
        try:
            known = profile_of(engine.model) if seat.simulated else None
            if known is not None:
                dated = f" ({known.measured})" if known.measured else ""
                return EngineFit(known.shape.step, None, f"simulated: {known.source}{dated}")
            proof = engine_headers(engine, seat.pool, self._environ)
            async with httpx.AsyncClient(timeout=timeout, trust_env=False, headers=proof) as client:
                kind = task_of(engine.kinds)
                task = TASKS[kind]
                if task.probe is not None:
                    rounds = 1 if self.measure_setting(seat) == "idle" else READING_ROUNDS
                    spent = ProbeCost()
                    step = await _fit_reading(task, seat, client, rounds, spent)
                    version = await _version(seat, client)
                    return EngineFit(step, version, f"measured: {kind}", read=spent)
                return await self._measure_engine(seat, engine, client)
        except (ProbeError, ShapeFileError, httpx.HTTPError) as error:
            log.warning(
                "engine was not measured engine=%s error=%s %s",
                seat.name,
                type(error).__name__,
                error,
            )
            return None

    def measure_setting(self, seat: EngineReplica) -> Measure | None:
        """Return `engine.measure` of an engine that is not started here, otherwise `None`."""
        engine = self._settings.pools[seat.pool].engine
        if seat.managed or ENGINE_KINDS[engine.kind].program is None:
            return None
        return engine.measure

    def assume_model(self, seat: EngineReplica) -> EngineFit:
        """Return an assumed model: that of the same GPU, or the slowest known one.

        Served requests correct it like a measured model (`router.feedback`).
        """
        gpu = self._settings.pools[seat.pool].gpu.type.lower()
        names = [name for name in PROFILES if name.partition("-")[0] in gpu.replace(" ", "")]
        name = names[0] if names else max(PROFILES, key=_slowness)
        why = f"engine.measure is {self.measure_setting(seat)}"
        return EngineFit(PROFILES[name].shape.step, None, f"assumed: as {name} ({why})")

    def note(self, seat: EngineReplica, fitted: EngineFit, at_us: int) -> EngineMeasurement:
        """Return the measurement as `engine status` shows it."""
        spent = fitted.spent
        return EngineMeasurement(
            seat.name, self.measure_setting(seat), fitted.source, at_us,
            spent.requests, spent.prompt_tokens, spent.output_tokens,
        )  # fmt: skip

    def capacity(self, fitted: EngineFit) -> dict[str, Any]:
        """Return the columns of a `capacity` row: the step model, and the tightest promises."""
        ttft_ms, tpot_ms = self._slo()
        step = fitted.step
        return {
            "slo_ttft_ms": ttft_ms,
            "slo_tpot_ms": tpot_ms,
            "step_a_s": step.a_s,
            "step_b_s": step.b_s,
            "step_c_s": step.c_s,
            "step_d_s": step.d_s,
            "step_t0_s": step.t0_s,
            "source": fitted.source,
        }

    def _slo(self) -> tuple[float, float]:
        """Return the tightest TTFT and TPOT of all policies, in ms."""
        rules = self._settings.policies
        ttft = [rule.slo.ttft_ms for rule in rules if rule.slo.ttft_ms is not None]
        tpot = [rule.slo.tpot_ms for rule in rules if rule.slo.tpot_ms is not None]
        return min(ttft, default=DEFAULT_SLO_MS[0]), min(tpot, default=DEFAULT_SLO_MS[1])

    async def _measure_engine(
        self, seat: EngineReplica, engine: EngineSection, client: httpx.AsyncClient
    ) -> EngineFit:
        version = await _version(seat, client)
        model = None if engine.model is None else Path(engine.model)
        under = None
        if seat.managed and model is not None and (model / "config.json").exists():
            flags = (*seat.tuned, *engine.flags)
            under = await asyncio.to_thread(
                profiles.profile_context, model, engine_version=version or "", flags=flags
            )
            remembered = profiles.load(self._kept, model, under)
            if remembered is not None:
                return EngineFit(remembered.step, version, _fit_text(remembered))
        workload = Workload(seat.base_url, seat.served_name, parse)
        limits = SMALL if self.measure_setting(seat) == "idle" else None
        made = await profile(workload, limits=limits, client=client)
        if under is not None and model is not None:
            profiles.save(self._kept, model, under, made)
        log.warning("engine was measured engine=%s step=%s", seat.name, asdict(made.step))
        return EngineFit(made.step, version, _fit_text(made), made)


def _slowness(name: str) -> float:
    return PROFILES[name].shape.step.b_s + PROFILES[name].shape.step.a_s


def _fit_text(made: StepFit) -> str:
    return (
        f"measured: {made.observations} observations in {made.seconds:.1f} s, median error "
        f"{100 * made.error_median:.0f} %"
    )


async def _version(seat: EngineReplica, client: httpx.AsyncClient) -> str | None:
    answer = await client.get(f"{seat.base_url.removesuffix('/v1')}/version")
    if answer.status_code != 200:
        return None
    try:
        version = answer.json()["version"]
    except (ValueError, KeyError, TypeError):  # a page of another engine kind
        return None
    return version if isinstance(version, str) else None


async def _fit_reading(
    task: EngineTask,
    seat: EngineReplica,
    client: httpx.AsyncClient,
    rounds: int = READING_ROUNDS,
    spent: ProbeCost | None = None,
) -> FittedStepModel:
    """Return a line through median times of short and long inputs; `spent` counts the cost."""
    probe = task.probe
    assert probe is not None
    points: list[tuple[int, float]] = []
    for size in probe.sizes:
        question = probe.question(seat.served_name, size)
        times: list[float] = []
        for _ in range(rounds):
            began = time.monotonic()
            answer = await client.post(seat.base_url + task.path, **question)
            answer.raise_for_status()
            times.append(time.monotonic() - began)
        tokens = size * 1000 // AUDIO_MS_PER_TOKEN if probe.seconds else _prompt_tokens_of(answer)
        points.append((tokens, median(times)))
        if spent is not None:
            spent.requests += rounds
            spent.prompt_tokens += rounds * tokens
    (short, fast), (long, slow) = points[0], points[-1]
    # Short inputs vanish in the constant; a slope flattened by noise would make them free.
    least = LEAST_SLOPE * slow / max(long, 1)
    slope = max((slow - fast) / (long - short), least) if long > short else least
    constant = max(fast - slope * short, 1e-6)
    return FittedStepModel(a_s=1e-6, b_s=0.0, c_s=0.0, d_s=slope, t0_s=constant)


def _prompt_tokens_of(answer: httpx.Response) -> int:
    try:
        return int(answer.json()["usage"]["prompt_tokens"])
    except (ValueError, LookupError, TypeError) as error:
        raise ProbeError(
            "its answer tells no prompt_tokens: nothing says how fast it reads"
        ) from error
