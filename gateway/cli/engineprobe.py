"""Command `breakeven engine probe`: measured performance of this machine's accelerator."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from backends.engine import torchprobe
from backends.engine.environment import Environment, flavour_here
from backends.engine.torchprobe import ComparedRate, ProbeFileError, ProbeRequest
from gateway.cli.output import AsJson, emit, fail, table, writable
from gateway.config.settings import Settings

ENVIRONMENT = Path(Settings().state_dir) / "engine"
PARTS = "bandwidth, flops, launch, attention, all_reduce, kv_transfer"


def probe(
    environment: Annotated[
        Path, typer.Option("--engine", help="The engine's environment; its torch measures.")
    ] = ENVIRONMENT,
    only: Annotated[
        str | None, typer.Option(help=f"Parts to measure, separated by commas: {PARTS}.")
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            help="Lengths for attention in tokens, separated by commas; default: 512 to 32,768."
        ),
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="Use small sizes, as on a CPU.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the results as JSON, for `engine plan --probe`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure bandwidth, FLOP/s, kernel launches, attention and transfers.

    Also measures all-reduce and KV transfer between engines. `engine plan` reads the file. Each
    figure is the median of several repeats on random data. Takes a minute on a GPU; run nothing
    else there.
    """
    writable(out)
    parts = _parts(only)
    try:
        lengths = tuple(int(word) for word in tokens.split(",")) if tokens else ()
    except ValueError:
        fail(f"not a list of numbers: {tokens}")
    if any(length < 1 for length in lengths):
        fail(f"--tokens {tokens}: a length is at least 1")
    place = Environment(environment.resolve())
    if not place.python.exists():
        fail(f"{environment} holds no engine: breakeven engine install")
    request = ProbeRequest(place, flavour_here(), parts, lengths, small)
    says = Console(emoji=False, stderr=True)
    try:
        with says.status("probe") as status:
            document = torchprobe.measure(request, lambda line: status.update(line[:60]))
        if out is not None:
            out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except ProbeFileError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{out}: {error.strerror}")
    emit(document, as_json=as_json, show=lambda to: show(to, document))


def _parts(only: str | None) -> tuple[str, ...]:
    if only is None:
        return ()
    known = PARTS.split(", ")
    parts = tuple(word.strip() for word in only.split(","))
    for part in parts:
        if part not in known:
            fail(f"no part is named {part}; there are {PARTS}")
    return parts


def show(out: Console, document: dict[str, Any]) -> None:
    device = document["device"]
    rates = torchprobe.compare_rates(document)
    if rates:
        title = f"{device['count']} x {device['name']}, torch {device['torch']}"
        columns = ("", ">measured", ">lowest", ">highest", ">data sheet", ">ratio", "unit")
        out.print(table(title, columns, [_row(rate) for rate in rates]))
    launch = document.get("launch", {})
    for name, words in (("each_s", "one by one"), ("each_in_graph_s", "from a CUDA graph")):
        if name in launch:
            out.print(f"a launch, {words}: {1e6 * launch[name]['value']:.2f} us")
    if document.get("attention"):
        out.print(attention_table(document))
    for item in document.get("all_reduce", ()):
        out.print(
            f"all-reduce of {item['bytes'] / 1024:,.0f} KiB over {item['ranks']}:"
            f" {1e6 * item['seconds']['value']:,.1f} us, {item['bus_bytes_s'] / 1e9:,.1f} GB/s"
        )
    if moved := document.get("kv_transfer"):
        speeds = ", ".join(
            f"{moved[part]['value'] / 1e9:,.2f} GB/s in {moved[part]['descriptors']:,} pieces"
            for part in ("whole", "blocks")
        )
        way = torchprobe.kv_transport(document) or "a way that UCX does not tell"
        out.print(f"KV from process to process ({moved['memory']}): {speeds}, by {way}")
    for name, reason in document.get("unavailable", {}).items():
        out.print(f"{name} was not measured: {reason}", markup=False)


def attention_table(document: dict[str, Any]) -> Table:
    columns = ("phase", ">tokens", ">plain", ">fused", ">times faster")
    cells = [
        [phase, f"{count:,}", *(_time(item) for item in pair), f"{times:.1f}" if times else "-"]
        for phase, count, pair, times in torchprobe.attention_rows(document)
    ]
    return table("\nAttention of one layer of Llama 3 8B's shape", columns, cells)


def _row(compared_rate: ComparedRate) -> list[str]:
    scale, unit = (1e12, "TB/s") if compared_rate.name == "bandwidth" else (1e12, "TFLOP/s")
    values = [
        f"{value / scale:.4g}"
        for value in (compared_rate.value, compared_rate.low, compared_rate.high)
    ]
    sheet = "-" if compared_rate.sheet is None else f"{compared_rate.sheet / scale:.4g}"
    ratio = "-" if compared_rate.ratio is None else f"{100 * compared_rate.ratio:.0f} %"
    return [compared_rate.name, *values, sheet, ratio, unit]


def _time(value: float | str) -> str:
    return value if isinstance(value, str) else f"{1e3 * value:.4g} ms"
