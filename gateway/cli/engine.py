"""`breakeven engine`: install it, list what it could run on, plan before renting, bench, run."""

from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from backends.engine import install as installation
from backends.engine import torchprobe
from backends.engine.catalog import GPUS, Gpu, PriceRange, UnknownGpu, find
from backends.engine.loadfloor import Load
from backends.engine.modelconfig import UnsupportedModel
from backends.engine.plan import Figure, Plan, Question, plan
from backends.engine.torchprobe import ProbeFileError
from gateway.cli import engineops
from gateway.cli.enginebench import bench
from gateway.cli.engineeval import evaluate
from gateway.cli.enginefit import fit
from gateway.cli.engineladder import ladder
from gateway.cli.enginepack import FlavourName, pack, unpack
from gateway.cli.engineprobe import probe
from gateway.cli.engineprofile import profile
from gateway.cli.enginetune import tune
from gateway.cli.output import AsJson, emit, fail, table
from gateway.config.settings import Settings

app = typer.Typer(
    help="Own engines: install, probe, plan, bench, tune, eval, operate.", no_args_is_help=True
)
for command in (
    bench, fit, probe, profile, ladder, tune, pack, unpack,
    engineops.status, engineops.drain, engineops.resume, engineops.restart,
    engineops.logs,
):  # fmt: skip
    app.command()(command)
app.command("eval")(evaluate)
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
    flavour: FlavourName = None,
    as_json: AsJson = False,
) -> None:
    """Install vLLM into an environment of its own (CUDA where a GPU is, else the CPU build)."""
    request = installation.Request(directory.resolve(), flavour, find_links=tuple(find_links or ()))
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
    """The GPU catalogue: memory, bandwidth, FLOP/s, dated public prices.

    TB/s and TFLOP/s are the data sheet's; in brackets what was measured, which `engine plan` takes.
    """
    emit([asdict(gpu) for gpu in GPUS], as_json=as_json, show=_show_gpus)


@app.command("plan")
def plan_command(
    model_dir: Annotated[Path, typer.Argument(help="Directory with the model's config.json.")],
    gpu: Annotated[
        str | None, typer.Option(help="Name from `breakeven engine list`; default: --probe's.")
    ] = None,
    probe_file: Annotated[
        Path | None,
        typer.Option("--probe", help="File of `engine probe`: its figures for the catalogue's."),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs to spread over; default: the fewest that fit.")
    ] = None,
    context: Annotated[
        int | None, typer.Option(min=1, help="Context in tokens; default: the model's.")
    ] = None,
    utilization: Annotated[
        float, typer.Option(min=0.1, max=1.0, help="vLLM's --gpu-memory-utilization.")
    ] = 0.9,
    users: Annotated[
        int | None, typer.Option(min=1, help="Requests at once: what serving them costs at least.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Of each of --users.")] = 512,
    output_tokens: Annotated[int, typer.Option(min=1, help="Of each of --users.")] = 256,
    usd_per_hour: Annotated[
        float | None, typer.Option(min=0.0, help="Of all GPUs together, for $ per 1M tokens.")
    ] = None,
    tpot_ms: Annotated[
        float | None,
        typer.Option(min=1.0, help="Promised for each further token: how much prompt fits a step."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a GPU can do with a model: memory, KV room, floors; every number with its formula.

    Status 1 when the model does not fit, with --json, too.
    """
    dollars = None if usd_per_hour is None else Decimal(str(usd_per_hour))
    load = None if users is None else Load(users, prompt_tokens, output_tokens, dollars)
    question = Question(
        tensor_parallel=gpus,
        context_tokens=context,
        gpu_memory_utilization=utilization,
        load=load,
        tpot_ms=tpot_ms,
    )
    try:
        made = plan(model_dir, _planned_for(gpu, probe_file), question)
    except (UnknownGpu, UnsupportedModel, ProbeFileError, OSError) as error:
        fail(str(error))
    emit(asdict(made), as_json=as_json, show=lambda out: _show_plan(out, made))
    if not made.fits:
        raise typer.Exit(1)


def _planned_for(name: str | None, probe_file: Path | None) -> Gpu:
    if probe_file is None:
        if name is None:
            fail("say --gpu: a name from `breakeven engine list`")
        return find(name)
    document = torchprobe.read(probe_file)
    return torchprobe.measured(find(name or str(document["device"].get("name"))), document)


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


def _show_gpus(out: Console) -> None:
    columns = ("GPU", ">GiB", ">TB/s", ">bf16 TFLOP/s", ">fp8 TFLOP/s", "interconnect", "USD/h")
    cells = [
        [
            gpu.name,
            f"{gpu.memory_gib}",
            _rate(gpu.bandwidth_bytes_s, gpu.measured_bandwidth_bytes_s, ".2f"),
            _rate(gpu.flops.get("bf16"), gpu.measured_flops.get("bf16"), ".0f"),
            _rate(gpu.flops.get("fp8"), gpu.measured_flops.get("fp8"), ".0f"),
            gpu.interconnect,
            "-" if gpu.price is None else _price(gpu.price),
        ]
        for gpu in GPUS
    ]
    out.print(table("GPUs", columns, cells))
    out.print("\nTB/s and TFLOP/s of the data sheet; in brackets measured, which `plan` takes:")
    for gpu in GPUS:
        if gpu.measured_source:
            out.print(f"  {gpu.name}: {gpu.measured_source}", markup=False)


def _rate(sheet: float | None, measured: float | None, form: str) -> str:
    if sheet is None:
        return "-"
    known = "" if measured is None else f" ({measured / 1e12:{form}})"
    return f"{sheet / 1e12:{form}}{known}"


def _price(price: PriceRange) -> str:
    low, high = price.low_usd_per_hour, price.high_usd_per_hour
    return f"{low if low == high else f'{low}-{high}'} ({price.seen})"


def _show_plan(out: Console, made: Plan) -> None:
    title = f"{made.model} on {made.gpus} x {made.gpu}: {'fits' if made.fits else 'does not fit'}"
    cells = [[label(figure), amount(figure), figure.formula] for figure in made.figures]
    out.print(table(title, ("figure", ">value", "formula"), cells))
    if made.flags:
        out.print(f"\nflags: {' '.join(made.flags)}")
    for warning in made.warnings:
        out.print(f"warning: {warning}")


def label(figure: Figure) -> str:
    """A figure's name; a time's without its unit, which `amount` chooses."""
    return figure.name.removesuffix("_s") if figure.unit == "s" else figure.name


def amount(figure: Figure) -> str:
    """A figure's value as people read it: many bytes in GiB, parts of a second in ms or us."""
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
