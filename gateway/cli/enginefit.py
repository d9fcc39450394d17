"""Command `breakeven engine fit`: engine model from measured requests, with its error."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from backends.simulator.fit import PACE_START, Runs, believed_model, fit_pace
from backends.simulator.measurements import MeasurementError, read
from backends.simulator.profiles import DATA, PROFILES
from backends.simulator.shape import EngineShape
from backends.simulator.shapefile import save
from backends.simulator.validate import ValidationFigure, figures, halves, saturated, worst
from gateway.cli.output import AsJson, emit, fail, table, writable

SHIPPED = "h200-llama-3.1-8b-fp8"
CALM = (
    "warning: no fitted run offers clearly more load than was served, so the model's predictions"
    " for higher load are a guess: add a run of `engine bench` at twice the rate"
)
FILE_HELP = (
    "Measured requests as CSV or .csv.gz, one per row: "
    "start_s,input_tokens,output_tokens,ttft_s,e2e_s and offered_rate, which separates the runs; "
    "queue_s if known. Or the JSON of `engine bench`. Default: the bundled H200 measurements."
)


def fit(
    files: Annotated[list[Path] | None, typer.Argument(help=FILE_HELP)] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Fit to every second run and validate on the others.")
    ] = False,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Fit nothing; validate the shipped profile.")
    ] = False,
    kv_tokens: Annotated[
        int | None, typer.Option(min=16, help="KV cache in tokens, as the engine logs at start.")
    ] = None,
    block_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a KV cache block.")] = 16,
    seqs: Annotated[int, typer.Option(min=1, help="The engine's --max-num-seqs.")] = 256,
    budget: Annotated[
        int, typer.Option(min=1, help="The engine's --max-num-batched-tokens.")
    ] = 8192,
    context: Annotated[int, typer.Option(min=1, help="The engine's --max-model-len.")] = 131_072,
    evaluations: Annotated[
        int, typer.Option(min=1, help="Maximum number of evaluations of the search.")
    ] = 400,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the fitted model, for `policy simulate --engine POOL=FILE`."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit an engine model to measured requests, with a table of its errors.

    The requests run through the simulated engine that also serves HTTP and what-ifs: batches,
    chunked prefill, KV blocks, preemption. With --validate, exits with 1 if an error exceeds its
    limit.
    """
    runs = _runs(files)
    shape = PROFILES[SHIPPED].shape
    if files:
        if as_is:
            fail("--as-is judges the shipped profile by its own measurements: name no file")
        if kv_tokens is None:
            fail("say --kv-tokens: the engine logs its KV cache in tokens when it starts")
        shape = EngineShape(
            PACE_START.step, kv_tokens // block_tokens + 1, block_tokens, seqs, budget, context
        )
    writable(out)
    held_out: list[str] = []
    fitted_to: Runs = runs
    if validate or as_is:
        fitted_to, held_out = halves(runs)
        if validate and not held_out:
            fail("--validate needs runs at two rates at least: the column `offered_rate`")
    if not as_is:
        pace = fit_pace(replace(shape, pace=PACE_START), fitted_to, evaluations=evaluations)
        shape = replace(shape, step=believed_model(pace), pace=pace)
    found = figures(shape, runs, held_out)
    if out is not None:
        try:
            save(out, shape)
        except OSError as error:
            fail(f"--out {out}: {error.strerror}")
    document = {
        "fitted_to": list(fitted_to),
        "held_out": held_out,
        "saturated": as_is or saturated(fitted_to),
        "model": asdict(shape),
        "figures": [
            {**asdict(figure), "error": figure.error, "good": figure.good} for figure in found
        ],
    }
    emit(document, as_json=as_json, show=lambda to: _show(to, document, found, shape))
    if (validate or as_is) and not all(figure.good for figure in found):
        raise typer.Exit(1)


def _runs(files: list[Path] | None) -> Runs:
    runs: dict[str, list[Any]] = {}
    for path in files or [DATA / "h200_llama8b_fp8_requests.csv.gz"]:
        try:
            found = read(path)
        except MeasurementError as error:
            fail(str(error))
        for name, requests in found.items():
            if name in runs:
                fail(f"{path}: a run at {name} requests/s is in another file, too")
            runs[name] = requests
    return runs


def _show(
    out: Console, document: dict[str, Any], found: list[ValidationFigure], shape: EngineShape
) -> None:
    columns = (">run", "figure", ">observed", ">simulated", ">error", ">bar", "")
    out.print(table("Runs by offered requests/s", columns, [_row(figure) for figure in found]))
    out.print()
    out.print(table("Worst of what is judged", columns, [_row(figure) for figure in worst(found)]))
    pace = shape.step_timing
    step = pace.step
    bent = f" + {1e12 * step.q_s:.1f} ps x prefill x tokens before it" if step.q_s else ""
    out.print(
        f"\nstep = {1e3 * step.a_s:.3f} ms + {1e6 * step.b_s:.2f} us x sequences"
        f" + {1e9 * step.c_s:.2f} ns x context + {1e6 * step.d_s:.2f} us x prefill{bent};"
        f" with prefill at least {1e3 * pace.captured_s:.1f} ms, {1e3 * pace.eager_s:.1f} ms"
        f" beyond {pace.captured_tokens} tokens; intake {1e3 * step.t0_s:.1f} ms"
        f" + {1e6 * pace.stream_s:.1f} us x running ^ {pace.stream_power:.2f}",
        markup=False,
    )
    if not document["saturated"]:
        out.print(f"\n{CALM}", markup=False)


def _row(validation_figure: ValidationFigure) -> list[str]:
    kind = "held out" if validation_figure.held_out else ""
    bar = "-" if validation_figure.bar is None else f"{100 * validation_figure.bar:.0f} %"
    name = f"{validation_figure.name} {validation_figure.unit}".rstrip()
    return [
        validation_figure.run,
        name,
        f"{validation_figure.observed:,.1f}",
        f"{validation_figure.simulated:,.1f}",
        f"{100 * validation_figure.error:+.1f} %",
        bar,
        kind if validation_figure.good else f"{kind} BEYOND",
    ]
