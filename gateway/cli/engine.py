"""Commands `breakeven engine`: install, list GPUs, plan, measure and operate engines."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from backends.engine import install as installation
from backends.engine.catalog import GPUS, PriceRange
from backends.engine.compressor import install_compressor
from backends.engine.environment import Environment
from gateway.cli.enginepack import FlavourName
from gateway.cli.output import AsJson, emit, fail, table
from gateway.cli.progress_bars import progress
from gateway.config.settings import Settings

ENVIRONMENT = Path(Settings().state_dir) / "engine"


def install(
    directory: Annotated[
        Path, typer.Option(help="Folder of the engine's own environment.")
    ] = ENVIRONMENT,
    find_links: Annotated[
        list[str] | None, typer.Option(help="Folder or page to find wheels in; may be repeated.")
    ] = None,
    flavour: FlavourName = None,
    compressor: Annotated[
        bool,
        typer.Option("--compressor", help="Install llm-compressor too, for `engine quantize`."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Install vLLM into its own environment (CUDA with a GPU, else CPU)."""
    request = installation.InstallRequest(
        directory.resolve(), flavour, find_links=tuple(find_links or ())
    )
    with progress(quiet=as_json) as bar:
        task = bar.add_task("engine", total=None)

        def report(news: installation.InstallProgress) -> None:
            done = None if news.fraction is None else news.fraction
            bar.update(task, description=f"{news.stage}: {news.message}", completed=done or 0,
                       total=None if done is None else 1.0)  # fmt: skip

        try:
            result = installation.install(request, report)
            if compressor and not isinstance(result, installation.NotAvailable):
                install_compressor(
                    Environment(result.directory), result.directory.with_name("compressor"),
                    lambda words, share: report(
                        installation.InstallProgress("llm-compressor", words, share)
                    ),
                )  # fmt: skip
        except installation.InstallError as error:
            fail(str(error))
    emit(asdict(result), as_json=as_json, show=lambda out: _show_install(out, result))


def list_gpus(as_json: AsJson = False) -> None:
    """List the GPU catalogue: memory, bandwidth, FLOP/s, dated public prices.

    TB/s and TFLOP/s are from the data sheet; measured values, which `engine plan` uses, are in
    brackets.
    """
    emit([asdict(gpu) for gpu in GPUS], as_json=as_json, show=_show_gpus)


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
