"""Command `breakeven engine tune`: fastest vLLM flags for a model, objective and machine."""

import asyncio
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from backends.engine import ladderrun, tuned, tunerun, tunespace
from backends.engine.benchfigures import BenchSlo
from backends.engine.benchload import PromptShape
from backends.engine.environment import Environment, flavour_here, vllm_version
from backends.engine.ladder import LadderHost
from backends.engine.profiles import hardware
from backends.engine.tune import (
    Arm,
    BaselineFailed,
    FlagDimension,
    choose_arm,
    defaults,
    describe_arm,
    flags_of,
    is_exact,
)
from backends.engine.tunerun import Objective, TuneGoal, TuneResult, TuneRun
from backends.engine.worklog import OtherWork, WorkLog, open_log
from gateway.cli.engineprobe import ENVIRONMENT
from gateway.cli.output import AsJson, emit, fail, table, writable
from gateway.config.settings import Settings

OBJECTIVES = get_args(Objective)
TUNINGS = Path(Settings().state_dir) / "tunings"
USERS = {"cuda": 64, "cpu": 4}


ModelArgument = Annotated[
    Path, typer.Argument(help="Model directory; without weights, random ones are used.")
]
SloTpotMsOption = Annotated[
    float,
    typer.Option(
        min=0.1, help="SLO in milliseconds for the p99 of TPOT; a load counts only within it."
    ),
]
SloTtftMsOption = Annotated[
    float | None,
    typer.Option(min=0.1, help="SLO in milliseconds for the p99 of TTFT; default: none."),
]
UsdPerHourOption = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        help="Cost of all the engine's GPUs for an hour, in USD, for the objective cost.",
    ),
]
AtOnceOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Concurrent requests for ttft and tpot (default: 1); else of the first trial.",
    ),
]
OnlyOption = Annotated[
    str | None,
    typer.Option(
        help=f"Search only these dimensions, separated by commas: {', '.join(tunespace.ORDER)}."
    ),
]
CompareOption = Annotated[
    str | None,
    typer.Option(
        help="Only compare these choices with the defaults, for example weights=fp8,kv=fp8."
    ),
]
SecondsOption = Annotated[
    float | None,
    typer.Option(
        min=0, help="Start no trial after this many seconds; repeat the command to resume."
    ),
]
LogOption = Annotated[
    Path | None,
    typer.Option(help="Log of finished trials in JSON lines, from which a search resumes."),
]


def tune(
    model: ModelArgument,
    objective: Annotated[
        str, typer.Option(help=f"Objective of the search: {', '.join(OBJECTIVES)}.")
    ],
    environment: Annotated[
        Path, typer.Option("--engine", help="The engine's environment, with vLLM.")
    ] = ENVIRONMENT,
    slo_tpot_ms: SloTpotMsOption = 50.0,
    slo_ttft_ms: SloTtftMsOption = None,
    usd_per_hour: UsdPerHourOption = None,
    prompt_tokens: Annotated[int, typer.Option(min=8, help="Tokens of each prompt.")] = 512,
    output_tokens: Annotated[int, typer.Option(min=2, help="Tokens of each answer.")] = 256,
    shared_tokens: Annotated[
        int, typer.Option(min=0, help="Tokens of the prefix that all prompts share.")
    ] = 0,
    at_once: AtOnceOption = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Exclude flags that change the model's numbers (FP8).")
    ] = False,
    only: OnlyOption = None,
    compare: CompareOption = None,
    flags: Annotated[
        str, typer.Option(help="vLLM flags of every engine, for example '--max-model-len 4096'.")
    ] = "",
    seconds: SecondsOption = None,
    log: LogOption = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the profile; default: next to the log.")
    ] = None,
    start_limit: Annotated[
        float, typer.Option(min=1, help="Maximum seconds for the start of an engine.")
    ] = 900.0,
    as_json: AsJson = False,
) -> None:
    """Search vLLM flags for an objective at an SLO, and write a profile.

    `serve` starts engines with it: `pools.NAME.engine.profile`. At the end, defaults and best run
    in turn, twice each, and the profile states the gain; `--compare` does only that. Exits with 1
    until the search has ended.
    """
    fixed = _split_flags(flags)
    place, flavour = _engine_environment(model, environment, out), flavour_here()
    host = ladderrun.host_of(model, place, flavour)
    space = tunespace.tuning_space(host, exact=exact, names=_names(only))
    arm = _arm(space, compare)
    path = log or TUNINGS / f"{model.resolve().name}-{objective}.jsonl"
    goal = _goal(objective, slo_tpot_ms, slo_ttft_ms, usd_per_hour)
    tuning = TuneRun(
        model.resolve(), place, flavour, PromptShape(prompt_tokens, output_tokens, shared_tokens),
        goal, at_once or _users(flavour, goal), path.with_name(f"{path.stem}-logs"),
        space, base=(*_dummy(host), *fixed), start_limit_s=start_limit,
    )  # fmt: skip
    about = _about(tuning)
    try:
        found = _search(tuning, path, about, seconds, arm, quiet=as_json)
    except (OtherWork, BaselineFailed) as error:
        fail(str(error))
    told = _result_document(tuning, found, about)
    profile = out or path.with_suffix(".profile.json")
    if found.ended:
        _write(profile, (*fixed, *_better(space, found)), model, told)
    emit(told, as_json=as_json, show=lambda to: _show(to, told, profile, path))
    if not found.ended:
        raise typer.Exit(1)


def _users(flavour: str, goal: TuneGoal) -> int:
    return USERS[flavour] if goal.by_load else 1


def _write(profile: Path, flags: Sequence[str], model: Path, told: dict[str, Any]) -> None:
    try:
        tuned.write(profile, flags, model, told)
    except OSError as error:
        fail(f"{profile} cannot be written: {error.strerror}; the same command tries it again")


def _better(space: Sequence[FlagDimension], found: TuneResult) -> tuple[str, ...]:
    """Return the best flags, or none if nothing is better than the defaults."""
    return flags_of(space, found.best) if found.is_better else ()


def _split_flags(flags: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(flags))
    except ValueError as error:
        fail(f"--flags: {error}")


def _dummy(host: LadderHost) -> tuple[str, ...]:
    return ("--load-format", "dummy") if host.random_weights else ()


def _engine_environment(model: Path, environment: Path, out: Path | None) -> Environment:
    writable(out)
    if not (model / "config.json").is_file():
        fail(f"{model} is not a model: it has no config.json")
    place = Environment(environment.resolve())
    if not place.python.exists():
        fail(f"{environment} holds no engine: breakeven engine install")
    return place


def _names(only: str | None) -> tuple[str, ...]:
    names = tuple(word.strip() for word in only.split(",")) if only else ()
    for name in names:
        if name not in tunespace.ORDER:
            fail(f"unknown dimension {name}; known are {', '.join(tunespace.ORDER)}")
    return names


def _about(tuning: TuneRun) -> dict[str, Any]:
    """Return the identity of a log; its answers hold for one machine, model, engine and aim."""
    rate = tuning.goal.usd_per_hour if tuning.goal.objective == "cost" else None
    return {
        "tune": 1, "model": str(tuning.model), "config_sha256": tuned.digest(tuning.model),
        "hardware": hardware(), "vllm": vllm_version(tuning.environment),
        "objective": tuning.goal.objective, "usd_per_hour": None if rate is None else str(rate),
        "slo": asdict(tuning.goal.promise), "shape": asdict(tuning.shape), "first": tuning.first,
        "base": tuning.base, "space": [dimension.name for dimension in tuning.space],
    }  # fmt: skip


def _goal(
    objective: str, tpot_ms: float, ttft_ms: float | None, usd_per_hour: float | None
) -> TuneGoal:
    if objective not in OBJECTIVES:
        fail(f"no objective is named {objective}; there are {', '.join(OBJECTIVES)}")
    if objective == "cost" and usd_per_hour is None:
        fail("the objective cost needs a rate: --usd-per-hour 3.50")
    promise = BenchSlo(ttft_s=None if ttft_ms is None else ttft_ms / 1e3, tpot_s=tpot_ms / 1e3)
    hourly = None if usd_per_hour is None else Decimal(str(usd_per_hour))
    return TuneGoal(objective, promise, hourly)  # type: ignore[arg-type]  # (checked above)


def _arm(space: Sequence[FlagDimension], words: str | None) -> Arm | None:
    if words is None:
        return None
    pairs = [word.strip().partition("=") for word in words.split(",")]
    try:
        arm = choose_arm(space, {name: choice for name, _, choice in pairs})
    except ValueError as error:
        fail(f"--compare: {error}")
    if arm == defaults(space):
        fail("--compare: these are vLLM's defaults")
    return arm


def _search(
    tuning: TuneRun, log: Path, about: dict[str, Any], seconds: float | None, arm: Arm | None, *,
    quiet: bool,
) -> TuneResult:  # fmt: skip
    until_s = float("inf") if seconds is None else time.monotonic() + seconds
    with open_log(log), Console(emoji=False, stderr=True, quiet=quiet).status("tune") as status:
        kept = WorkLog(log, about)
        return asyncio.run(tunerun.tune(tuning, kept, status.update, until_s=until_s, arm=arm))


def _result_document(tuning: TuneRun, found: TuneResult, about: dict[str, Any]) -> dict[str, Any]:
    return {
        **about,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "ended": found.ended,
        "failed": found.failed or None,
        "trials": found.trials,
        "best": dict(describe_arm(tuning.space, found.best)),
        "flags": list(flags_of(tuning.space, found.best)),
        "exact": is_exact(tuning.space, found.best),
        "unit": tuning.goal.unit,
        "defaults": list(found.finals[::2]),
        "tuned": list(found.finals[1::2]),
        "gain": round(found.gain, 4),
        "turns": [round(turn, 4) for turn in found.turns],
        "wins": found.ended and found.is_better,
    }


def _show(out: Console, told: dict[str, Any], profile: Path, log: Path) -> None:
    title = f"{Path(told['model']).name} on {told['hardware']}, vLLM {told['vllm']}"
    rows = [[name, choice] for name, choice in told["best"].items()]
    out.print(table(title, ("flag", "choice"), rows or [["all", "vLLM's defaults"]]))
    if told["failed"]:
        out.print("\nthe comparison at the end failed; the same command tries it again")
        out.print(told["failed"], markup=False)
        return
    if not told["ended"]:
        out.print(f"\nthe search has not ended ({told['trials']} trials): the same command goes on")
        return
    if not told["tuned"]:
        out.print("\nnothing beats vLLM's defaults by more than the margin")
    else:
        turns = (
            f"{first:,.4g}, then {best:,.4g}"
            for first, best in zip(told["defaults"], told["tuned"], strict=False)
        )
        out.print(f"\ndefaults, then best, in turn: {'; '.join(turns)} {told['unit']}")
        out.print(
            f"{told['gain']:.3f} times better than vLLM's defaults"
            if told["wins"]
            else "it does not beat vLLM's defaults in every turn: the profile has no flags of it"
        )
    if told["wins"] and not told["exact"]:
        out.print("it changes the model's numbers: compare answers before you serve with it")
    out.print(f"{told['trials']} trials in {log}; profile: {profile}", markup=False)
