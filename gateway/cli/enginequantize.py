"""Command `breakeven engine quantize`: quantize weights or KV cache, using your prompts."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from backends.engine import quantizing
from backends.engine.environment import Environment, flavour_here
from backends.engine.evalprompts import BadPrompts, read
from backends.engine.quantizing import Method, QuantizedModel, QuantizeError, Quantizer
from gateway.cli.engineprobe import ENVIRONMENT
from gateway.cli.output import AsJson, emit, fail

COMPRESSOR = ENVIRONMENT.parent / "compressor"


def quantize(
    model: Annotated[Path, typer.Argument(help="Folder of a 16-bit model.")],
    out: Annotated[Path, typer.Argument(help="New folder for the quantized model.")],
    method: Annotated[
        Method,
        typer.Option(
            help="fp8, int8: weights and activations; gptq, awq: 4-bit weights; fp8-kv: the cache."
        ),
    ],
    prompts: Annotated[
        Path | None,
        typer.Option(help="JSON lines with `messages` or `prompt`; gptq, awq, fp8-kv need them."),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, help="Maximum number of prompts for calibration.")
    ] = 512,
    by: Annotated[
        Quantizer,
        typer.Option(
            help=(
                "Program that quantizes; `breakeven` supports Llama's architecture, without fp8-kv."
            )
        ),
    ] = "llm-compressor",
    compressor: Annotated[
        Path, typer.Option(help="Environment with llm-compressor, which is optional.")
    ] = COMPRESSOR,
    environment: Annotated[
        Path, typer.Option("--engine", help="The engine's environment, with vLLM.")
    ] = ENVIRONMENT,
    as_json: AsJson = False,
) -> None:
    """Quantize a model. Judge it with `engine eval` on other prompts.

    Calibration uses the activations of the model's own answers to your prompts.
    """
    try:
        if prompts is not None:
            read(prompts)
        request = quantizing.QuantizeRequest(
            Environment(environment.resolve()), flavour_here(), model.resolve(), out.resolve(),
            method, None if prompts is None else prompts.resolve(), compressor.resolve(), by, rows,
        )  # fmt: skip
        with Console(emoji=False, stderr=True, quiet=as_json).status("quantize") as status:
            made = quantizing.quantize(request, lambda words: status.update(words[:100]))
    except BadPrompts as error:
        fail(f"--prompts: {error}")
    except QuantizeError as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail("stopped: nothing was kept")
    emit(asdict(made), as_json=as_json, show=lambda to: _show(to, made, prompts))


def _show(out: Console, made: QuantizedModel, prompts: Path | None) -> None:
    share = made.bytes_after / made.bytes_before
    out.print(
        f"{made.out}: {made.method} by {made.by}, {made.bytes_after / 1e6:,.1f} MB"
        f" ({share:.0%} of {made.bytes_before / 1e6:,.1f})",
        markup=False,
    )
    if made.calibration:
        out.print(f"calibrated on {made.calibration['prompts']} prompts,"
                  f" {made.calibration['tokens']:,} tokens")  # fmt: skip
    named = prompts or "FILE"
    out.print(
        f"next: breakeven engine eval {made.model} {made.out} --prompts {named}", markup=False
    )
