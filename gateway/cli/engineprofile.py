"""Command `breakeven engine profile`: time of a running engine by kernel."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console

from backends.engine.kernels import KernelProfile, ProfilerTraceError, read, traces
from backends.engine.probes import ProbeError, Workload, measure
from backends.metrics import parse
from gateway.cli.output import AsJson, emit, fail, table

STOP_S = 600.0  # a trace is written before the engine answers
NEEDED = "--profiler-config.profiler=torch --profiler-config.torch_profiler_dir="


def profile(
    url: Annotated[str, typer.Argument(help="URL of the engine: http://127.0.0.1:8100/v1.")],
    model: Annotated[str, typer.Option(help="Model name that the engine serves.")],
    directory: Annotated[
        Path,
        typer.Option(
            "--traces", help="The engine's torch_profiler_dir, as a path of this machine."
        ),
    ],
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Profile the engine's own traffic for this many seconds; send no requests.",
        ),
    ] = None,
    users: Annotated[
        int, typer.Option(min=1, max=256, help="Number of concurrent requests to send.")
    ] = 4,
    tokens: Annotated[int, typer.Option(min=1, max=4096, help="Tokens of each answer.")] = 32,
    rows: Annotated[int, typer.Option(min=1, help="Number of kernels to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Record a running vLLM with its torch profiler; list kernels by time.

    The engine must have been started with `flags: [--profiler-config.profiler=torch,
    --profiler-config.torch_profiler_dir=/ABSOLUTE/FOLDER]`. It is slower while it records.
    """
    base = url.rstrip("/")
    began_s = time.time() - 1.0
    says = Console(emoji=False, stderr=True)
    with says.status("profile") as status:
        try:
            asyncio.run(_record(base, model, (seconds, users, tokens), status.update))
            found = _newest(directory, began_s)
        except (ProbeError, ProfilerTraceError) as error:
            fail(str(error))
        except httpx.HTTPError as error:
            fail(f"{base}: {type(error).__name__} {error}")
    document = {"trace": str(found[0]), **asdict(found[1])}
    emit(document, as_json=as_json, show=lambda out: _show(out, found[1], rows, found[0]))


async def _record(
    base: str, model: str, load: tuple[float | None, int, int], say: Callable[[str], None]
) -> None:
    """Start the profiler, run the load, and stop the profiler, also after an error."""
    seconds, users, tokens = load
    origin = base.removesuffix("/v1")
    async with httpx.AsyncClient(timeout=STOP_S, trust_env=False) as client:
        started = await client.post(f"{origin}/start_profile")
        if started.status_code == 404:
            raise ProfilerTraceError(
                f"{origin} has no profiler: start it with {NEEDED}FOLDER (in its pool's `flags`)"
            )
        started.raise_for_status()
        try:
            say("recording")
            if seconds is not None:
                await asyncio.sleep(seconds)
            else:
                await _load(client, Workload(base, model, parse), users, tokens)
        finally:
            say("the engine writes its trace")
            (await client.post(f"{origin}/stop_profile")).raise_for_status()


async def _load(client: httpx.AsyncClient, work: Workload, users: int, tokens: int) -> None:
    """Send `users` requests at once; if one fails, the others end before the trace does."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(users):
                asked = measure(client, work, prompt_words=64, output_tokens=tokens)
                group.create_task(asked)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _newest(directory: Path, since_s: float) -> tuple[Path, KernelProfile]:
    """Return the first new trace with kernels; traces of front ends have none."""
    found = traces(directory, since_s)
    if not found:
        raise ProfilerTraceError(
            f"no trace came to {directory}: is it the engine's torch_profiler_dir?"
        )
    why = ""
    for path in found:
        try:
            return path, read(path)
        except ProfilerTraceError as error:
            why = f"{path.name}: {error}"
    raise ProfilerTraceError(why)


def _show(out: Console, made: KernelProfile, rows: int, path: Path) -> None:
    cells = [
        [
            kernel.name[:90], f"{kernel.calls:,}", f"{kernel.total_us / 1e3:,.2f}",
            f"{kernel.total_us / kernel.calls:,.1f}", f"{kernel.share:.1%}",
        ]
        for kernel in made.kernels[:rows]
    ]  # fmt: skip
    what = "kernels of the GPU" if made.device == "gpu" else "operations of the processor"
    columns = ("name", ">calls", ">ms", ">us a call", ">share")
    out.print(table(f"{len(made.kernels)} {what}, by their own time", columns, cells))
    busy = made.total_us / made.span_us if made.span_us else 0.0
    out.print(
        f"{made.total_us / 1e3:,.1f} ms of work within {made.span_us / 1e3:,.1f} ms ({busy:.0%})"
    )
    out.print(f"trace: {path}", markup=False, soft_wrap=True)
