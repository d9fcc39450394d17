"""Command `breakeven engine bench`: load test of an engine or API, with cost per token."""

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from backends.engine import benchload
from backends.engine.benchclient import BenchClient, BenchTarget
from backends.engine.benchfigures import METHOD, PUSD, BenchSlo, Percentile, RequestSample
from backends.engine.benchload import LoadProfile, PromptShape
from backends.engine.benchplot import svg
from backends.engine.benchreport import BenchReport, BenchRun, document, run_of
from backends.engine.bounded import NobodyThere, NoPage, fetch_page, models_of
from backends.errors import BackendError
from backends.http import HttpClient, PoolLimits
from backends.metrics import ProbeFailed, parse
from backends.openai import Credentials, OpenAIBackend
from backends.secret import Secret
from backends.simulator.measurements import MeasurementError, read
from gateway.cli.output import AsJson, emit, fail, table, writable

CONNECTIONS = 4096
MOST = 1_000_000
LONGEST_S = 86_400.0
NO_RATE = "enter your GPU rate: --usd-per-hour 3.50"
SWEEP = "1,2,4,8,16,32"


ModelOption = Annotated[
    str | None, typer.Option(help="Model to request; default: the first in the list of models.")
]
ConcurrencyOption = Annotated[
    str | None,
    typer.Option(help=f"Closed loops: concurrent requests, separated by commas. Default: {SWEEP}."),
]
RateOption = Annotated[
    str | None,
    typer.Option(help="Open loops instead: Poisson arrivals per second, for example 1,2,4."),
]
SpeedOption = Annotated[
    float,
    typer.Option(min=0.01, max=MOST, help="Speed of --trace: 2 replays it twice as fast."),
]
SpreadOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=LONGEST_S,
        help="Seconds over which the start of a closed loop's streams is spread.",
    ),
]
CompletionsOption = Annotated[
    bool,
    typer.Option(
        "--completions", help="Send requests to /completions instead of /chat/completions."
    ),
]
IgnoreEosOption = Annotated[
    bool,
    typer.Option(help="Send vLLM's `ignore_eos` for answers of equal length; off for APIs."),
]
SloE2EMsOption = Annotated[
    float | None,
    typer.Option(
        min=0.0, help="SLO of goodput for the latency of a whole answer, in milliseconds."
    ),
]


def bench(
    url: Annotated[str, typer.Argument(help="Base URL of an engine or an API, with its /v1.")],
    model: ModelOption = None,
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the API key.")
    ] = None,
    concurrency: ConcurrencyOption = None,
    rate: RateOption = None,
    trace: Annotated[
        Path | None, typer.Option(help="Replay recorded arrivals: a CSV as for `engine fit`.")
    ] = None,
    speed: SpeedOption = 1.0,
    even: Annotated[
        bool, typer.Option("--even", help="Space the arrivals of --rate evenly.")
    ] = False,
    requests: Annotated[
        int | None, typer.Option(min=1, help="Requests of each run; default: 4 x load, 16 to 1024.")
    ] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Tokens of each prompt.")] = 512,
    output_tokens: Annotated[int, typer.Option(min=1, help="Tokens of each answer.")] = 256,
    shared_tokens: Annotated[
        int, typer.Option(min=0, help="Tokens of the prefix that all prompts share.")
    ] = 0,
    spread: SpreadOption = 0.0,
    completions: CompletionsOption = False,
    ignore_eos: IgnoreEosOption = True,
    slo_ttft_ms: Annotated[
        float | None, typer.Option(min=0.0, help="SLO of goodput for the TTFT, in milliseconds.")
    ] = None,
    slo_tpot_ms: Annotated[
        float | None, typer.Option(min=0.0, help="SLO of goodput for the TPOT, in milliseconds.")
    ] = None,
    slo_e2e_ms: SloE2EMsOption = None,
    usd_per_hour: Annotated[
        str | None, typer.Option(help="Cost of all the engine's GPUs for an hour, in USD.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of arrivals and prompts.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the results as JSON, for `engine fit`.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a plot of the sweep as SVG.")] = None,
    as_json: AsJson = False,
) -> None:
    """Load an OpenAI URL: latencies with intervals, goodput, saturation, cost.

    Closed loops keep a number of requests in flight; open loops send at fixed times. Exits with 1
    if a request failed. Ctrl-C ends it with the complete runs.
    """
    writable(out, plot)
    shape = PromptShape(prompt_tokens, output_tokens, shared_tokens)
    rng = random.Random(seed)  # noqa: S311  (chance that can be repeated, no secret)
    loops = _loops(shape, rng, (concurrency, rate, trace), requests, spread, speed, even=even)
    dollars = _dollars(usd_per_hour)
    promise = BenchSlo(*(ms and ms / 1e3 for ms in (slo_ttft_ms, slo_tpot_ms, slo_e2e_ms)))
    key = _key(key_env)
    url = url.rstrip("/")
    about = asyncio.run(_about(url, model, key)) | asdict(shape) | {"seed": seed}
    target = BenchTarget(about["model"], chat=not completions, ignore_eos=ignore_eos)
    runs: list[BenchRun] = []
    whole = _whole(_run(url, key, target, loops, (shape, promise, rng), runs, quiet=as_json), url)
    made = BenchReport(about, promise, tuple(runs), dollars)
    _report_run(made, out, plot, as_json=as_json)
    if not whole:
        fail(f"stopped after {len(runs)} of {len(loops)} runs: these are above")
    if any(sample.error is not None for run in runs for sample in run.samples):
        raise typer.Exit(1)


def _report_run(made: BenchReport, out: Path | None, plot: Path | None, *, as_json: bool) -> None:
    """Print the report before writing it, so that a full disk loses nothing."""
    if not made.runs:
        fail("stopped before the first run had ended")
    emit(document(made), as_json=as_json, show=lambda to: _show(to, made))
    _write(made, out, plot)


def _loops(
    shape: PromptShape,
    rng: random.Random,
    asked: tuple[str | None, str | None, Path | None],
    requests: int | None,
    spread_s: float,
    speed: float,
    *,
    even: bool,
) -> list[LoadProfile]:
    if sum(request is not None for request in asked) > 1:
        fail("one of --concurrency, --rate and --trace")
    concurrency, rate, trace = asked
    if trace is not None:
        try:
            runs = read(trace)
        except MeasurementError as error:
            fail(str(error))
        return [benchload.recorded_load(run[:requests], speed=speed) for run in runs.values()]
    try:
        loads = [float(word) for word in (rate or concurrency or SWEEP).split(",")]
    except ValueError:
        fail(f"not a list of numbers: {rate or concurrency}")
    if not all(0 < load <= MOST for load in loads):  # also excludes NaN
        fail(f"rates and requests at once are above 0 and at most {MOST:,}")
    if rate is None and any(load != int(load) for load in loads):
        fail("requests at once are whole numbers")
    loops = []
    for load in loads:
        count = requests or min(max(16, round(4 * load)), 1024)
        if rate is None:
            loops.append(benchload.closed_load(int(load), count, shape, spread_s=spread_s))
        elif even:
            loops.append(benchload.even_load(load, count, shape))
        else:
            loops.append(benchload.poisson_load(load, count, shape, rng))
    return loops


def _dollars(text: str | None) -> Decimal | None:
    try:
        found = None if text is None else Decimal(text)
    except InvalidOperation:
        fail(f"--usd-per-hour {text} is not a number")
    if found is not None and not (found.is_finite() and found > 0):
        fail("--usd-per-hour is above 0")
    return found


def _key(name: str | None) -> str | None:
    key = os.environ.get(name) if name else None
    if name and not key:
        fail(f"{name} is not set")
    return key


async def _about(url: str, model: str | None, key: str | None) -> dict[str, Any]:
    """Return the model and the engine's KV cache metrics, which `engine fit` uses."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    found: dict[str, Any] = {"url": url, "model": model, "at": time.time(), "kv_tokens": None}
    async with httpx.AsyncClient(timeout=10, trust_env=False, headers=headers) as client:
        try:
            if model is None:
                found["model"] = models_of(await fetch_page(client, f"{url}/models"))[0]
        except NobodyThere as error:
            fail(f"{url}: {error}")
        except NoPage as error:
            fail(f"{url}/models: {error}; {_hint(url)}")
        with suppress(NoPage, ProbeFailed):
            page = await fetch_page(client, f"{url.removesuffix('/v1')}/metrics")
            found["kv_tokens"] = parse(page.body.decode("utf-8", "replace")).kv_capacity_tokens
    return found


def _hint(url: str) -> str:
    return "say --model" if url.endswith("/v1") else "give the address with its /v1, or say --model"


def _whole(work: Coroutine[Any, Any, None], url: str) -> bool:
    """Run the work; return False if the user ended it early."""
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        return False
    except (BackendError, ValueError) as error:
        fail(f"{url}: {error}")
    return True


async def _run(
    url: str,
    key: str | None,
    target: BenchTarget,
    loops: list[LoadProfile],
    measure: tuple[PromptShape, BenchSlo, random.Random],
    runs: list[BenchRun],
    *,
    quiet: bool,
) -> None:
    shape, promise, rng = measure
    http = HttpClient(PoolLimits(connections=CONNECTIONS, waiters=CONNECTIONS))
    client = BenchClient(
        OpenAIBackend(url, Credentials(Secret(key) if key else None), client=http), target
    )
    try:
        prompts = await client.calibrate(shape.shared, rng)
        with _progress(quiet=quiet) as bar:
            for loop in loops:
                task = bar.add_task(_load(loop), total=len(loop.asks))
                samples = await client.run(loop, prompts, _counting(bar, task))
                runs.append(run_of(loop, samples, promise))
    finally:
        await http.aclose()


def _counting(bar: Progress, task: Any) -> Callable[[RequestSample], None]:
    return lambda _: bar.advance(task)


def _progress(*, quiet: bool) -> Progress:
    done = TextColumn("{task.completed:.0f}/{task.total:.0f}")
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeElapsedColumn())
    return Progress(*columns, console=Console(emoji=False, stderr=True), disable=quiet)


def _write(made: BenchReport, out: Path | None, plot: Path | None) -> None:
    text = json.dumps(document(made), indent=1) + "\n"
    for path, content in ((out, text), (plot, svg(made))):
        if path is not None:
            try:
                path.write_text(content, encoding="utf-8")
            except OSError as error:
                fail(f"{path}: {error.strerror}")


def _show(out: Console, made: BenchReport) -> None:
    title = f"{made.about['model']} at {made.about['url']}"
    rates = ("=load", ">requests", ">failed", ">in flight", ">req/s", ">out tok/s", ">in SLO",
             ">good req/s", ">$/1M in+out", ">$/1M out")  # fmt: skip
    times = ("=load", ">TTFT p50", ">TTFT p99", ">ITL p99", ">TPOT p50", ">TPOT p99", ">E2E p99")
    out.print(table(title, rates, [_rates(made, run) for run in made.runs]))
    out.print(
        table(
            "\nms, in brackets where it lies with 95 %",
            times,
            [_latency_cells(run) for run in made.runs],
        )
    )
    unit = "requests/s" if made.is_open_loop else "requests at once"
    at = made.saturation
    out.print(f"\nsaturation: {'not reached' if at is None else f'{at:g} {unit}'}")
    best = made.best
    if best is not None and best.point is not None:
        good = best.point.good_requests_per_s
        out.print(f"goodput: {good:.2f} requests/s inside the SLO at most, at {_load(best.loop)}")
    if made.usd_per_hour is None:
        out.print(f"cost per 1M tokens: {NO_RATE}")
    else:
        out.print(f"cost at ${made.usd_per_hour}/h; input + output and output only do not compare")
    out.print(f"intervals: {METHOD}")
    for reason in sorted(
        {sample.error for run in made.runs for sample in run.samples if sample.error}
    ):
        out.print(f"failed: {reason}", markup=False)


def _rates(made: BenchReport, run: BenchRun) -> list[str]:
    point = run.point
    if point is None:
        return [_load(run.loop), str(len(run.samples)), str(len(run.samples)), *["-"] * 7]
    costs = made.costs(run)
    dollars = ["-", "-"] if costs is None else [f"{cost / PUSD:.3f}" for cost in costs]
    return [
        _load(run.loop), str(point.requests), str(point.failed), f"{point.in_flight:.1f}",
        f"{point.rates.requests:.2f}", f"{point.rates.output_tokens:,.0f}",
        f"{100 * point.attainment:.1f} %", f"{point.good_requests_per_s:.2f}", *dollars,
    ]  # fmt: skip


def _latency_cells(run: BenchRun) -> list[str]:
    point = run.point
    if point is None:
        return [_load(run.loop), *["-"] * 6]
    wanted = ((point.ttft, 50), (point.ttft, 99), (point.itl, 99), (point.tpot, 50),
              (point.tpot, 99), (point.e2e, 99))  # fmt: skip
    return [_load(run.loop), *(_ms(values, percent) for values, percent in wanted)]


def _load(loop: LoadProfile) -> str:
    return f"{loop.name}/s" if loop.rate is not None else loop.name


def _ms(values: tuple[Percentile, ...], percent: int) -> str:
    for percentile in values:
        if percentile.percent == percent:
            low, value, high = (
                1e3 * each for each in (percentile.low_s, percentile.value_s, percentile.high_s)
            )
            return f"{value:.4g} [{low:.4g}-{high:.4g}]"
    return "-"
