"""Run of a ladder: starts and measures one server after the other and logs each result."""

import importlib.util
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backends.engine.benchfigures import BenchSlo
from backends.engine.benchload import PromptShape, closed_load
from backends.engine.environment import CpuOptions, Environment, Flavour
from backends.engine.flags import BadFlags, EngineLaunch
from backends.engine.ladder import LadderHost, LadderLoad, LadderStep
from backends.engine.trial import (
    DRAIN_S,
    DidNotServe,
    RunningServer,
    ServerTrial,
    TrialMeter,
    file_name,
    make_vllm_trial,
    meter,
    serving,
)
from backends.engine.worklog import WorkLog
from backends.errors import BackendError

_NAIVE = Path(__file__).parent / "inside" / "naive.py"
NAME = "ladder"
ALONE = 6  # measured requests of one user, after two for warm-up
ENOUGH_S = 30.0  # target seconds of the run with all users; each sends at least one request
MODULES = ("bitsandbytes", "flash_attn", "numba")


@dataclass(frozen=True, slots=True)
class LadderRun:
    """Parameters of a ladder run: the model's directory, the engine's environment, the load."""

    model: Path
    environment: Environment
    flavour: Flavour
    climb: LadderLoad
    logs: Path
    start_limit_s: float = 900.0
    cpu: CpuOptions = field(default_factory=CpuOptions)


def host_of(model: Path, environment: Environment, flavour: Flavour) -> LadderHost:
    """Return the facts that decide which steps can run on this host."""
    try:
        folder = environment.packages
        modules = frozenset(name for name in MODULES if (folder / name).is_dir())
    except FileNotFoundError:  # no virtual environment: use this interpreter's modules
        modules = frozenset(name for name in MODULES if importlib.util.find_spec(name))
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return LadderHost(
        gpu=flavour == "cuda",
        modules=modules,
        quantized="quantization_config" in config,
        random_weights=not any(model.glob("*.safetensors")),
    )


async def run_steps(
    ladder: LadderRun, wanted: Iterable[LadderStep], log: WorkLog, say: Callable[[str], None]
) -> None:
    """Run every wanted step. A failure is logged with its reason, and the next step runs."""
    for rung in wanted:
        say(rung.name)
        try:
            async with serving(await _server_trial(ladder, rung)) as server:
                log.add(rung.name, await _measure_step(ladder.climb, server, rung))
        except (DidNotServe, BackendError, BadFlags, OSError) as error:
            log.add(rung.name, {"failed": str(error)[:600], "flags": rung.flags})


async def _server_trial(ladder: LadderRun, rung: LadderStep) -> ServerTrial:
    launch = EngineLaunch(
        ladder.environment, ladder.model, NAME, ladder.flavour, flags=rung.flags,
        eager=rung.eager, drain_s=DRAIN_S,
    )  # fmt: skip
    log = ladder.logs / f"{file_name(rung.name).lower()}.log"
    if rung.kind == "vllm":
        return await make_vllm_trial(launch, log, ladder.start_limit_s, ladder.cpu)
    python = [str(ladder.environment.python), "-P", str(_NAIVE)]
    named = ["--model", str(ladder.model), "--served-model-name", NAME, *rung.flags, "--port"]
    return ServerTrial(
        launch, lambda port: [*python, *named, str(port)], log, ladder.start_limit_s, ladder.cpu
    )


async def _measure_step(
    asked: LadderLoad, server: RunningServer, rung: LadderStep
) -> dict[str, Any]:
    """Measure one user, then all users, after warm-up requests that are not counted."""
    shape = PromptShape(asked.prompt, asked.output, asked.shared)
    async with meter(server, shape, BenchSlo()) as of:
        await of.run(closed_load(1, 2, shape))
        alone = await of.point(closed_load(1, ALONE, shape))
        users = asked.users
        await _warm(of, users, shape)
        rate = alone.rates.output_tokens
        count = min(max(users, round(ENOUGH_S * rate / asked.output) * 2), 4 * users)
        together = await of.point(closed_load(users, count, shape))
    return {
        "ttft_s": alone.ttft[0].value_s,
        "alone_tokens_s": rate,
        "ttft_users_s": together.ttft[0].value_s,
        "tokens_s": together.rates.output_tokens,
        "memory_bytes": server.memory_bytes(),
        "start_s": round(server.start_s, 1),
        "requests": count,
        "flags": rung.flags,
    }


async def _warm(of: TrialMeter, users: int, shape: PromptShape) -> None:
    """Send one batch of `users` requests, so that the engine compiles for that size."""
    await of.run(closed_load(users, users, PromptShape(shape.prompt, 4, shape.shared)))
