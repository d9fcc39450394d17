"""Command `breakeven engine plan`: capacity of a GPU for a model, before renting it."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from backends.engine import torchprobe
from backends.engine.catalog import GpuSpec, UnknownGpu, find_gpu
from backends.engine.loadfloor import UserLoad
from backends.engine.modelconfig import UnsupportedModel, read_model
from backends.engine.plan import EnginePlan, plan_model
from backends.engine.planning.question import GPUS_PER_HOST, DraftModel, PlanFigure, PlanRequest
from backends.engine.planning.weights import READ_AT
from backends.engine.torchprobe import ProbeFileError
from gateway.cli.output import AsJson, emit, fail, table

GIB = 1 << 30
MOST = 1e6  # maximum of options: infinity has no arithmetic


Names = Annotated[
    list[str] | None,
    typer.Option(help="GPU as in `breakeven engine list`; repeat it for each kind of a mixed set."),
]
ProbeFile = Annotated[
    Path | None,
    typer.Option(
        "--probe", help="Result file of `engine probe`; its figures replace the catalogue's."
    ),
]
Split = Annotated[
    int | None,
    typer.Option(min=1, help="Number of GPUs that each layer is split over; default: the minimum."),
]


PromisedPace = Annotated[
    float | None,
    typer.Option(
        min=1.0, max=MOST, help="TPOT promise in milliseconds; shows how much fits into a step."
    ),
]
PromisedFirst = Annotated[
    float | None,
    typer.Option(
        min=1.0, max=MOST, help="TTFT promise in milliseconds; compares whole engines with roles."
    ),
]


class KvDtype(StrEnum):
    AUTO = "auto"
    FP8 = "fp8"


PipelineOption = Annotated[
    int,
    typer.Option(
        "--pipeline-parallel", min=1, help="Number of pipeline stages, each on --gpus GPUs."
    ),
]
UsersOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Number of concurrent requests; shows the minimum cost of serving them."
    ),
]
UsdPerHourOption = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=MOST,
        help="Cost of all GPUs for an hour, in USD; shows the cost of 1M tokens.",
    ),
]
AcceptanceOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Probability that a drafted token is accepted; 0.75 to 0.85 for code.",
    ),
]


def plan(
    model_dir: Annotated[Path, typer.Argument(help="Directory with the model's config.json.")],
    gpu: Names = None,
    probe_file: ProbeFile = None,
    gpus: Split = None,
    pipeline: PipelineOption = 1,
    gpus_per_host: Annotated[
        int,
        typer.Option(min=1, help="GPUs of a host; a layer split over more crosses the network."),
    ] = GPUS_PER_HOST,
    context: Annotated[
        int | None, typer.Option(min=1, help="Context length in tokens; default: the model's.")
    ] = None,
    utilization: Annotated[
        float, typer.Option(min=0.1, max=1.0, help="vLLM's --gpu-memory-utilization.")
    ] = 0.9,
    kv_dtype: Annotated[KvDtype, typer.Option(help="vLLM's --kv-cache-dtype.")] = KvDtype.AUTO,
    users: UsersOption = None,
    prompt_tokens: Annotated[
        int, typer.Option(min=1, help="Prompt tokens of each request of --users.")
    ] = 512,
    output_tokens: Annotated[
        int, typer.Option(min=1, help="Output tokens of each request of --users.")
    ] = 256,
    usd_per_hour: UsdPerHourOption = None,
    tpot_ms: PromisedPace = None,
    ttft_ms: PromisedFirst = None,
    draft: Annotated[
        Path | None,
        typer.Option(help="Directory of a draft model; shows its memory and its speedup."),
    ] = None,
    drafted: Annotated[
        int, typer.Option(min=1, help="Number of tokens that --draft proposes in a step.")
    ] = 5,
    acceptance: AcceptanceOption = 0.8,
    as_json: AsJson = False,
) -> None:
    """Compute what a GPU can do with a model, each number with its formula.

    Also shows the model in other formats, with the cheapest for the load marked, and on 1 to 8
    GPUs. Status 1 when the model does not fit or vLLM rejects it, with --json, too.
    """
    dollars = None if usd_per_hour is None else Decimal(str(usd_per_hour))
    load = None if users is None else UserLoad(users, prompt_tokens, output_tokens, dollars)
    try:
        kinds = _planned_for(gpu or [], probe_file)
        question = PlanRequest(
            tensor_parallel=gpus or (len(kinds) if len(kinds) > 1 else None),
            pipeline_parallel=pipeline,
            gpus_per_host=gpus_per_host,
            context_tokens=context,
            gpu_memory_utilization=utilization,
            kv_dtype=kv_dtype.value,
            load=load,
            tpot_ms=tpot_ms,
            ttft_ms=ttft_ms,
            draft=None if draft is None else _draft(draft, drafted, acceptance),
        )
        made = plan_model(read_model(model_dir), kinds, question)
    except (UnknownGpu, UnsupportedModel, ProbeFileError, OSError) as error:
        fail(str(error))
    emit(asdict(made), as_json=as_json, show=lambda out: _show(out, made))
    if made.refused or not made.fits:
        raise typer.Exit(1)


def _draft(place: Path, drafted: int, acceptance: float) -> DraftModel:
    """Return the draft model with its full path, because vLLM looks up bare names on a hub."""
    folder = place if place.is_dir() else place.parent
    return DraftModel(read_model(place), drafted, acceptance, str(folder.resolve()))


def _planned_for(names: Sequence[str], probe_file: Path | None) -> list[GpuSpec]:
    if probe_file is None:
        if not names:
            fail("say --gpu: a name from `breakeven engine list`")
        return [find_gpu(name) for name in names]
    document = torchprobe.read(probe_file)
    if len(names) > 1:
        fail("--probe is of one kind of GPU: leave it out for a mixed set")
    name = names[0] if names else str(document["device"].get("name"))
    return [torchprobe.measured(find_gpu(name), document)]


def _show(out: Console, made: EnginePlan) -> None:
    verdict = "fits" if made.fits else "does not fit"
    title = f"{made.model} on {made.gpus} x {made.gpu}: {'refused' if made.refused else verdict}"
    cells = [[label(figure), amount(figure), figure.formula] for figure in made.figures]
    out.print(table(title, ("figure", ">value", "formula"), cells))
    if made.flags:
        out.print(f"\nflags: {shlex.join(made.flags)}", markup=False)
    for warning in made.warnings:
        out.print(f"warning: {warning}", markup=False)
    _show_choices(out, made)
    _show_scaling(out, made)
    _show_roles(out, made)


def _show_choices(out: Console, made: EnginePlan) -> None:
    rate = made.usd_per_gpu_hour  # as given, else the GPU's public list price
    dollars = None if rate is None else float(rate) / 3600
    cost = ">GPU-s per 1M" if dollars is None else ">USD per 1M"
    columns = ("weights", ">GPUs", ">GiB", ">KV tokens", ">one user's step", cost, "")
    cells = []
    for choice in made.choices:
        spent = choice.gpu_s_per_million
        each = "does not fit" if spent is None else _cost(spent, dollars)
        step = "-" if choice.step_s is None else f"{1e3 * choice.step_s:.1f} ms"
        cells.append(
            [
                choice.weights,
                f"{choice.gpus}",
                f"{choice.weight_bytes / GIB:,.1f}",
                f"{choice.kv_tokens:,}",
                step,
                each,
                "cheapest" if choice.advised else "",
            ]
        )
    out.print()
    out.print(table("In other formats, for the load (32 users unless --users)", columns, cells))
    out.print(READ_AT, markup=False)


def _cost(gpu_seconds: float, dollars: float | None) -> str:
    return f"{gpu_seconds:,.0f}" if dollars is None else f"{gpu_seconds * dollars:.3f}"


def _show_scaling(out: Console, made: EnginePlan) -> None:
    columns = (
        "layout", ">KV tokens", ">one prompt", ">tokens/s alone", ">tokens/s of all", ">a GPU",
    )  # fmt: skip
    cells = []
    for layout in made.scaling:
        if layout.tokens_s is None or layout.prefill_s is None or layout.tokens_s_alone is None:
            cells.append([layout.layout, f"{layout.kv_tokens:,}", "does not fit", "", "", ""])
            continue
        cells.append(
            [
                layout.layout,
                f"{layout.kv_tokens:,}",
                f"{1e3 * layout.prefill_s:.1f} ms",
                f"{layout.tokens_s_alone:,.0f}",
                f"{layout.tokens_s:,.0f}",
                f"{layout.efficiency or 0:.0%}",
            ]
        )
    out.print()
    out.print(table("On more GPUs, at most (floors)", columns, cells))


def _show_roles(out: Console, made: EnginePlan) -> None:
    """Show engines with and without roles, if a time per token is promised."""
    if not made.roles:
        return
    columns = (
        "copies", ">GPUs", ">requests/s", ">first token", ">next ones", "more breaks",
        ">USD per 1M", "",
    )  # fmt: skip
    cells = [
        [
            each.layout,
            f"{each.gpus}",
            f"{each.requests_s:,.1f}" if each.requests_s else "promise not kept",
            "-" if each.ttft_s is None else f"{1e3 * each.ttft_s:,.0f} ms",
            "-" if each.tpot_s is None else f"{1e3 * each.tpot_s:,.1f} ms",
            each.binds,
            "-" if each.usd_per_million is None else f"{each.usd_per_million:.3f}",
            "most" if each.advised else "",
        ]
        for each in made.roles
    ]
    out.print()
    out.print(table("Whole, or prefill and decode apart, inside the promise", columns, cells))
    out.print(
        "steps at what they were measured to take over their floors, arrivals evenly: at most; the"
        " cost is of output tokens",
        markup=False,
    )


def label(figure: PlanFigure) -> str:
    """Return a figure's name; that of a time without its unit, which `amount` chooses."""
    return figure.name.removesuffix("_s") if figure.unit == "s" else figure.name


def amount(figure: PlanFigure) -> str:
    """Return a figure's value with a readable unit: GiB for many bytes, ms or us for times."""
    if figure.unit == "B" and abs(figure.value) >= GIB:
        return f"{figure.value / GIB:,.2f} GiB"
    if figure.unit == "s" and 0 < figure.value < 1:
        scale, unit = (1e6, "us") if figure.value < 1e-3 else (1e3, "ms")
        scaled = figure.value * scale
        return f"{scaled:.3g} {unit}" if scaled < 999.5 else f"{scaled:.0f} {unit}"
    if figure.unit == "USD":
        return f"{figure.value:.3f} USD"
    digits = 0 if float(figure.value).is_integer() else 2
    return f"{figure.value:,.{digits}f} {figure.unit}".rstrip()
