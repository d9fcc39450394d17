"""`breakeven engine`: install the engine, list what it could run on, plan before renting."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from backends.engine import install as installation
from backends.engine.catalog import GPUS, UnknownGpu, find
from backends.engine.modelconfig import UnsupportedModel
from backends.engine.plan import Figure, Plan, Question, plan
from gateway.cli_output import AsJson, emit, fail, table
from gateway.settings import Settings

app = typer.Typer(help="Own engines: install, list GPUs, plan.", no_args_is_help=True)
GIB = 1 << 30
ENVIRONMENT = Path(Settings().state_dir) / "engine"


@app.command()
def install(
    directory: Annotated[
        Path, typer.Option(help="Where the engine's own environment is made.")
    ] = ENVIRONMENT,
    find_links: Annotated[
        list[str] | None, typer.Option(help="Folder or page with wheels; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install vLLM into an environment of its own (CUDA where a GPU is, else the CPU build)."""
    request = installation.Request(directory.resolve(), find_links=tuple(find_links or ()))
    with progress(quiet=as_json) as bar:
        task = bar.add_task("engine", total=None)

        def report(news: installation.Progress) -> None:
            done = None if news.fraction is None else news.fraction
            bar.update(task, description=f"{news.stage}: {news.message}", completed=done or 0,
                       total=None if done is None else 1.0)  # fmt: skip

        try:
            result = installation.install(request, report)
        except installation.InstallError as error:
            fail(str(error))
    emit(asdict(result), as_json=as_json, show=lambda out: _show_install(out, result))


@app.command("list")
def list_gpus(as_json: AsJson = False) -> None:
    """The GPU catalogue: memory, bandwidth, FLOP/s, dated public prices."""
    rows = [asdict(gpu) for gpu in GPUS]
    cells = [
        [
            gpu.name,
            f"{gpu.memory_gib}",
            f"{gpu.bandwidth_bytes_s / 1e12:.2f}",
            f"{(gpu.best_flops('bf16') or 0) / 1e12:.0f}",
            f"{(gpu.best_flops('fp8') or 0) / 1e12:.0f}",
            gpu.interconnect,
            "-"
            if gpu.price is None
            else f"{gpu.price.low_usd_per_hour}-{gpu.price.high_usd_per_hour} ({gpu.price.seen})",
        ]
        for gpu in GPUS
    ]
    columns = ("GPU", ">GiB", ">TB/s", ">bf16 TFLOP/s", ">fp8 TFLOP/s", "interconnect", "USD/h")
    emit(rows, as_json=as_json, show=lambda out: out.print(table("GPUs", columns, cells)))


@app.command("plan")
def plan_command(
    model_dir: Annotated[Path, typer.Argument(help="Directory with the model's config.json.")],
    gpu: Annotated[str, typer.Option(help="Name from `breakeven engine list`.")],
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs to spread over; default: the fewest that fit.")
    ] = None,
    context: Annotated[
        int | None, typer.Option(min=1, help="Context in tokens; default: the model's.")
    ] = None,
    utilization: Annotated[
        float, typer.Option(min=0.1, max=1.0, help="vLLM's --gpu-memory-utilization.")
    ] = 0.9,
    as_json: AsJson = False,
) -> None:
    """What a GPU can do with a model: memory, KV room, floors; every number with its formula."""
    question = Question(
        tensor_parallel=gpus, context_tokens=context, gpu_memory_utilization=utilization
    )
    try:
        made = plan(model_dir, find(gpu), question)
    except (UnknownGpu, UnsupportedModel, OSError) as error:
        fail(str(error))
    emit(asdict(made), as_json=as_json, show=lambda out: _show_plan(out, made))


def progress(*, quiet: bool = False) -> Progress:
    """The one look of everything that takes long."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=quiet,
    )


def _show_install(out: Console, result: Any) -> None:
    if isinstance(result, installation.NotAvailable):
        out.print(f"{result.reason}\nAdd it later with: {result.command}")
        return
    state = "installed" if result.fresh else "is already installed"
    out.print(f"vLLM {result.version} ({result.flavour}) {state} in {result.directory}")
    for stage, seconds in result.seconds.items():
        out.print(f"{seconds:8.1f} s  {stage}")


def _show_plan(out: Console, made: Plan) -> None:
    title = f"{made.model} on {made.gpus} x {made.gpu}: {'fits' if made.fits else 'does not fit'}"
    cells = [[figure.name, amount(figure), figure.formula] for figure in made.figures]
    out.print(table(title, ("figure", ">value", "formula"), cells))
    if made.flags:
        out.print(f"\nflags: {' '.join(made.flags)}")
    for warning in made.warnings:
        out.print(f"warning: {warning}")


def amount(figure: Figure) -> str:
    """A figure's value as people read it; bytes in GiB."""
    if figure.unit == "bytes" and abs(figure.value) >= GIB:
        return f"{figure.value / GIB:,.2f} GiB"
    digits = 0 if float(figure.value).is_integer() else 2
    return f"{figure.value:,.{digits}f} {figure.unit}".rstrip()
