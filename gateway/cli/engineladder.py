"""Command `breakeven engine ladder`: measured steps from a naive server to a tuned engine."""

import asyncio
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from backends.engine import ladderrun, torchprobe
from backends.engine.environment import Environment, flavour_here, vllm_version
from backends.engine.gpus import gpu_ids
from backends.engine.ladder import LadderLoad, LadderRow, LadderStep, lines, rungs
from backends.engine.ladderrun import LadderRun
from backends.engine.profiles import hardware
from backends.engine.torchprobe import ProbeFileError, ProbeRequest
from backends.engine.worklog import OtherWork, WorkLog, open_log
from gateway.cli.engineprobe import ENVIRONMENT, attention_table
from gateway.cli.output import AsJson, emit, fail, table
from gateway.config.settings import Settings

ATTENTION = "attention"


ModelArgument = Annotated[
    Path, typer.Argument(help="Model directory; without weights, random ones are used.")
]
EnvironmentOption = Annotated[
    Path, typer.Option("--engine", help="The engine's environment, with vLLM and torch.")
]
LogOption = Annotated[
    Path | None,
    typer.Option(help="Log in JSON lines, from which a run resumes; default: the model's name."),
]
GpusOption = Annotated[
    int,
    typer.Option(min=1, help="GPUs for a model that does not fit one: layers, or tensors in vLLM."),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(help="Run only this rung, named as in the list; may be repeated."),
]
MostOption = Annotated[
    int | None,
    typer.Option(min=0, help="Maximum number of rungs to run; 0 only shows the results so far."),
]


def ladder(
    model: ModelArgument,
    environment: EnvironmentOption = ENVIRONMENT,
    log: LogOption = None,
    users: Annotated[
        int, typer.Option(min=2, help="Number of concurrent requests for throughput.")
    ] = 8,
    prompt_tokens: Annotated[int, typer.Option(min=8, help="Tokens of each prompt.")] = 512,
    output_tokens: Annotated[int, typer.Option(min=2, help="Tokens of each answer.")] = 128,
    shared_tokens: Annotated[
        int, typer.Option(min=0, help="Tokens of the prefix that all prompts share.")
    ] = 400,
    gpus: GpusOption = 1,
    draft: Annotated[
        Path | None, typer.Option(help="Directory of a draft model; adds a rung.")
    ] = None,
    only: OnlyOption = None,
    most: MostOption = None,
    again: Annotated[bool, typer.Option("--again", help="Repeat rungs that failed.")] = False,
    attention: Annotated[
        bool, typer.Option(help="Measure the attention table too, at the end.")
    ] = True,
    start_limit: Annotated[
        float, typer.Option(min=1, help="Maximum seconds for the start of a server.")
    ] = 900.0,
    as_json: AsJson = False,
) -> None:
    """Measure each step from a naive server to vLLM. Repeat to resume.

    TTFT is measured with one user, throughput with --users. Each gain is relative to the step
    below, with one change, and to the first.
    """
    if not (model / "config.json").is_file():
        fail(f"{model} is not a model: it has no config.json")
    place, flavour = Environment(environment.resolve()), flavour_here()
    if not place.python.exists():
        fail(f"{environment} holds no engine: breakeven engine install")
    if gpus > 1 and gpus > len(gpu_ids()):
        fail(f"--gpus {gpus}: engines here see {len(gpu_ids())} (nvidia-smi, CUDA_VISIBLE_DEVICES)")
    named = None if draft is None else str(draft.resolve())
    climb = LadderLoad(users, prompt_tokens, output_tokens, shared_tokens, named, gpus)
    asked = rungs(ladderrun.host_of(model, place, flavour), climb)
    path = log or Path(Settings().state_dir) / "ladders" / f"{model.resolve().name}.jsonl"
    about = {"ladder": 1, "model": str(model.resolve()), "hardware": hardware(),
             "vllm": vllm_version(place), "climb": asdict(climb)}  # fmt: skip
    made = LadderRun(
        model.resolve(), place, flavour, climb, path.parent / f"{path.stem}-logs", start_limit
    )
    began = time.monotonic()
    says = Console(emoji=False, stderr=True, quiet=as_json)
    try:
        with nullcontext() if most == 0 else open_log(path), says.status("ladder") as status:
            kept = WorkLog(path, about)
            wanted = _select_steps(asked, kept, only, most, again=again)
            asyncio.run(ladderrun.run_steps(made, wanted, kept, status.update))
            rest = most is None or len(wanted) < most
            if attention and not only and rest and ATTENTION not in kept.done:
                _attend(ProbeRequest(place, flavour, (ATTENTION,)), kept)
    except OtherWork as error:
        fail(str(error))
    found = lines(asked, kept.done)
    probed = kept.done.get(ATTENTION, {}).get("probe")
    document = {**about, "rungs": [asdict(row) for row in found], "attention": probed}
    emit(document, as_json=as_json, show=lambda out: _show(out, about, found, probed))
    says.print(f"{time.monotonic() - began:.0f} s; kept in {path}", markup=False)


def _select_steps(
    asked: tuple[LadderStep, ...],
    log: WorkLog,
    only: list[str] | None,
    most: int | None,
    *,
    again: bool,
) -> list[LadderStep]:
    names = [rung.name for rung in asked]
    for name in only or ():
        if name not in names:
            fail(f"no rung is named {name!r}; there are: {'; '.join(names)}")
    open_ = [
        rung
        for rung in asked
        if (not only or rung.name in only)
        and rung.skipped is None
        and (rung.name not in log.done or (again and "failed" in log.done[rung.name]))
    ]
    return open_[:most]


def _attend(request: ProbeRequest, log: WorkLog) -> None:
    try:
        log.add(ATTENTION, {"probe": torchprobe.measure(request)})
    except ProbeFileError as error:
        log.add(ATTENTION, {"failed": str(error)[:600]})


def _show(out: Console, about: dict[str, Any], found: list[LadderRow], probed: Any) -> None:
    climb = about["climb"]
    title = (
        f"{Path(about['model']).name} on {about['hardware']}, vLLM {about['vllm']}:"
        f" {climb['prompt']} tokens in ({climb['shared']} shared), {climb['output']} out"
        + (f", {climb['gpus']} GPUs" if climb["gpus"] > 1 else "")
    )
    columns = ("=rung", ">TTFT p50", ">tok/s alone", ">TTFT at once", f">tok/s, {climb['users']}",
               ">memory", ">TTFT x", ">tok/s x", ">all TTFT x", ">all tok/s x", "")  # fmt: skip
    out.print(table(title, columns, [_cells(row) for row in found]))
    out.print("x: times better than the rung below with that one thing more; all: than the first")
    out.print("one engine climbs; `engine plan --tpot-ms` compares several whole and in roles")
    if probed:
        out.print(attention_table(probed))


def _cells(row: LadderRow) -> list[str]:
    memory = "-" if row.memory_bytes is None else f"{row.memory_bytes / 2**30:.2f} GiB"
    gains = (
        row.gain_ttft,
        row.gain_tokens,
        row.total_ttft,
        row.total_tokens,
    )
    return [
        row.name,
        _ms(row.ttft_s),
        _number(row.alone_tokens_s),
        _ms(row.ttft_users_s),
        _number(row.tokens_s),
        memory,
        *("-" if gain is None else f"{gain:.2f}" for gain in gains),
        row.note,
    ]


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{1e3 * value:,.1f} ms"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
