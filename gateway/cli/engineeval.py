"""Command `breakeven engine eval`: quality loss of a quantized or changed model."""

import asyncio
import hashlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from backends.engine import evalrun
from backends.engine.environment import Environment, flavour_here, vllm_version
from backends.engine.evalfigures import LIMITS, EvalConclusion, Risk, figures, verdict
from backends.engine.evalprompts import BadPrompts, Checker, Prompt, read
from backends.engine.evalrun import EvalSubject, EvaluationRun, subject
from backends.engine.profiles import hardware
from backends.engine.worklog import OtherWork, WorkLog, open_log
from gateway.cli.engineprobe import ENVIRONMENT
from gateway.cli.output import AsJson, emit, fail, table
from gateway.config.settings import Settings

RISKS = get_args(Risk)
EVALUATIONS = Path(Settings().state_dir) / "evaluations"


PromptsOption = Annotated[
    Path,
    typer.Option(help="JSON lines with `messages` or `prompt`, best from your own traffic."),
]
LimitOption = Annotated[
    float | None,
    typer.Option(min=0.0001, max=1, help="Maximum loss as a share, instead of the class's."),
]
CheckerOption = Annotated[
    str | None,
    typer.Option(
        help="Command or Python file: reads a prompt's JSON with `answer`, prints a score."
    ),
]
LogOption = Annotated[
    Path | None,
    typer.Option(help="Log of finished trials in JSON lines, from which a run resumes."),
]


def evaluate(
    baseline: Annotated[str, typer.Argument(help="Baseline: 'DIRECTORY [flags]' or URL[#MODEL].")],
    candidates: Annotated[
        list[str], typer.Argument(help="Candidate in the same form; NAME= in front names its row.")
    ],
    prompts: PromptsOption,
    risk: Annotated[
        str, typer.Option(help="Quality class: low allows a loss of 5 %, high of 1 %.")
    ] = "low",
    limit: LimitOption = None,
    checker: CheckerOption = None,
    tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens of each answer.")] = 128,
    at_once: Annotated[int, typer.Option(min=1, help="Number of concurrent requests.")] = 8,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the API key for the addresses.")
    ] = None,
    environment: Annotated[
        Path, typer.Option("--engine", help="The engine's environment, with vLLM.")
    ] = ENVIRONMENT,
    log: LogOption = None,
    start_limit: Annotated[
        float, typer.Option(min=1, help="Maximum seconds for the start of an engine.")
    ] = 900.0,
    as_json: AsJson = False,
) -> None:
    """Compare models with a baseline on your prompts.

    Exits with 1 unless all pass. The measures are greedy agreement, KL divergence and perplexity
    per token of the baseline's answers, if the engine returns log probabilities of a given text
    (vLLM), else up to the first difference. With a checker, its score decides. Repeat the command
    to resume.
    """
    sides = _sides(baseline, candidates)
    bound = _limit(risk, limit)
    try:
        asked_of = read(prompts)
        check = None if checker is None else Checker.of(checker)
    except (BadPrompts, ValueError) as error:
        fail(str(error))
    place = _engine_environment(sides, environment)
    path = log or EVALUATIONS / f"{sides[0].name}-{prompts.stem}.jsonl"
    about = _about(place, asked_of, tokens, checker)
    if check is not None:
        about["checker_digest"] = check.mark
    made = EvaluationRun(
        asked_of, tokens, at_once, place, flavour_here(), path.parent / f"{path.stem}-logs",
        check, _headers(api_key_env), start_limit,
    )  # fmt: skip
    first, others = sides[0], sides[1:]
    try:
        with (
            open_log(path),
            Console(emoji=False, stderr=True, quiet=as_json).status("eval") as status,
        ):
            kept = WorkLog(path, about)
            faults = asyncio.run(evalrun.evaluate(made, (first, others), kept, status.update))
    except OtherWork as error:
        fail(str(error))
    rows = [_row(made, (first, other), kept, bound, faults) for other in others]
    told = {**about, "baseline": asdict(first), "limit": bound, "candidates": rows,
            "faults": faults}  # fmt: skip
    emit(told, as_json=as_json, show=lambda out: _show(out, told, path))
    if any(row["verdict"]["state"] != "passes" for row in rows):
        raise typer.Exit(1)


def _sides(baseline: str, candidates: list[str]) -> list[EvalSubject]:
    try:
        sides = [subject(baseline), *(subject(candidate) for candidate in candidates)]
    except ValueError as error:
        fail(str(error))
    names = [side.name for side in sides[1:]]
    if len(set(names)) < len(names):
        fail(f"two candidates have one name ({', '.join(names)}): say NAME=... before each")
    return sides


def _limit(risk: str, limit: float | None) -> float:
    if risk not in RISKS:
        fail(f"no risk class is named {risk}; there are {', '.join(RISKS)}")
    return LIMITS[risk] if limit is None else limit  # type: ignore[index]  # (checked above)


def _engine_environment(sides: list[EvalSubject], environment: Path) -> Environment:
    place = Environment(environment.resolve())
    if not all(side.is_address for side in sides) and not place.python.exists():
        fail(f"{environment} holds no engine: breakeven engine install")
    return place


def _about(
    place: Environment, prompts: tuple[Prompt, ...], tokens: int, checker: str | None
) -> dict[str, Any]:
    """Return the identity of a log; its entries name models, so it can hold many candidates."""
    keys = hashlib.sha256("".join(sorted(prompt.key for prompt in prompts)).encode()).hexdigest()[
        :16
    ]
    version = vllm_version(place) if place.python.exists() else None
    return {"eval": 1, "hardware": hardware(), "vllm": version, "prompts": len(prompts),
            "prompts_digest": keys, "tokens": tokens, "checker": checker}  # fmt: skip


def _headers(variable: str | None) -> dict[str, str]:
    if variable is None:
        return {}
    if not os.environ.get(variable):
        fail(f"the environment has no {variable}")
    return {"authorization": f"Bearer {os.environ[variable]}"}


def _row(
    asked: EvaluationRun,
    sides: tuple[EvalSubject, EvalSubject],
    log: WorkLog,
    limit: float,
    faults: dict[str, str],
) -> dict[str, Any]:
    found, way, missing = evalrun.items(asked, sides, log)
    named = {"name": sides[1].name, "target": sides[1].target, "flags": sides[1].flags}
    try:
        made = figures(found)
    except ValueError as error:
        reason = faults.get(sides[1].name) or faults.get(sides[0].name) or str(error)
        return named | {"verdict": asdict(EvalConclusion("undecided", limit, (reason,)))}
    decided = asdict(verdict(made, limit, missing))
    return named | {"compared": way, "figures": asdict(made), "verdict": decided}


def _show(out: Console, told: dict[str, Any], log: Path) -> None:
    title = (
        f"{told['baseline']['name']} and what was made of it: {told['prompts']} prompts,"
        f" at most {told['limit']:.2%} lost"
    )
    columns = ("=model", ">agreement", ">same answers", ">perplexity", ">rise", ">KL",
               ">score", ">lost", "=verdict")  # fmt: skip
    out.print(table(title, columns, [_cells(candidate) for candidate in told["candidates"]]))
    for candidate in told["candidates"]:
        for reason in candidate["verdict"]["reasons"]:
            out.print(f"{candidate['name']}: {reason}", markup=False)
        if candidate.get("compared") == "freely":
            out.print(f"{candidate['name']}: compared up to the first difference of each answer")
    for name, fault in told["faults"].items():
        out.print(f"{name}: {fault}", markup=False)
    out.print(f"brackets: 95 %; KL in nats a token, at least; kept in {log}", markup=False)


def _cells(entry: dict[str, Any]) -> list[str]:
    state = entry["verdict"]["state"]
    found = entry.get("figures")
    if found is None:
        return [entry["name"], *["-"] * 7, state]
    differ, pair, scores = found["disagreement"], found["perplexities"], found["scores"]
    return [
        entry["name"],
        f"{1 - differ['value']:.2%} ({1 - differ['high']:.2%} to {1 - differ['low']:.2%})",
        f"{found['same']:.0%}",
        "-" if pair is None else f"{pair[0]:.4g} -> {pair[1]:.4g}",
        _share(found["perplexity"]),
        "-" if found["kl"] is None else f"{found['kl']['value']:.4f}",
        "-" if scores is None else f"{scores[0]:.3f} -> {scores[1]:.3f}",
        _share(found["score"]),
        state,
    ]


def _share(figure: dict[str, float] | None) -> str:
    if figure is None:
        return "-"
    value, low, high = (round(figure[name], 4) + 0.0 for name in ("value", "low", "high"))
    return f"{value:+.2%} ({low:+.2%} to {high:+.2%})"
