"""Results of `engine probe`, measured by the engine's interpreter and read by `plan`.

torch is in the engine's environment alone, so the measuring is a program of its own
(`inside/probe.py`). What it found takes the place of the catalogue's figures for the same GPU.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backends.engine.catalog import GpuSpec, Number, UnknownGpu, find_gpu
from backends.engine.environment import Environment, Flavour, variables
from backends.engine.packages import run

FORMAT = 1
_SCRIPT = Path(__file__).parent / "inside" / "probe.py"
_NUMBERS: tuple[Number, ...] = ("bf16", "fp16", "fp8", "int8")


class ProbeFileError(ValueError):
    """A probe that did not run, a file that holds none, or one of another GPU."""


@dataclass(frozen=True, slots=True)
class ComparedRate:
    """A measured rate beside the data sheet's; `sheet` `None` where none states it."""

    name: str
    value: float
    low: float
    high: float
    sheet: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.sheet if self.sheet else None


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """The parts to measure: names of the program's parts, prompt lengths of attention."""

    environment: Environment
    flavour: Flavour
    parts: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    small: bool = False
    timeout_s: float = 600.0

    @property
    def arguments(self) -> list[str]:
        # -P: nothing that lies beside the script may stand in for a package of that name.
        words = [str(self.environment.python), "-P", str(_SCRIPT)]
        words += ["--only", *self.parts] if self.parts else []
        words += ["--tokens", *map(str, self.tokens)] if self.tokens else []
        return [*words, "--small"] if self.small else words


def measure(request: ProbeRequest, on_line: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Runs it to its end. Blocking; raises `ProbeFileError` with what it printed last."""
    environ = variables(os.environ, flavour=request.flavour)
    code, text = run(request.arguments, environ, on_line, timeout_s=request.timeout_s)
    lines = text.splitlines()
    found = next((line for line in reversed(lines) if line.startswith('{"breakeven_probe"')), None)
    if code != 0 or found is None:
        raise ProbeFileError("the probe did not end well:\n" + "\n".join(lines[-6:]))
    return _check_document(json.loads(found), "the probe")


def read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProbeFileError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ProbeFileError(f"{path} is not JSON: {error}") from error
    return _check_document(document, str(path))


def _check_document(document: object, where: str) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("breakeven_probe") != FORMAT:
        raise ProbeFileError(f"{where} holds no `engine probe` of format {FORMAT}")
    if not isinstance(document.get("device"), dict):
        raise ProbeFileError(f"{where} names no device")
    return document


def gpu_of(document: Mapping[str, Any]) -> GpuSpec | None:
    """The catalogue's entry for what was measured; `None` for a processor or an unknown GPU."""
    device = document["device"]
    if device.get("kind") != "gpu":
        return None
    try:
        return find_gpu(str(device.get("name")))
    except UnknownGpu:
        return None


def compare_rates(document: Mapping[str, Any]) -> list[ComparedRate]:
    """Return rates beside the data sheet's: bytes/s and FLOP/s."""
    gpu = gpu_of(document)
    found = []
    if item := document.get("bandwidth"):
        sheet = None if gpu is None else gpu.bandwidth_bytes_s
        found.append(ComparedRate("bandwidth", *_three(item), sheet))
    for number in _NUMBERS:
        if item := document.get("flops", {}).get(number):
            sheet = None if gpu is None else gpu.flops.get(number)
            found.append(ComparedRate(number, *_three(item), sheet))
    return found


def measured(gpu: GpuSpec, document: Mapping[str, Any]) -> GpuSpec:
    """The GPU with what was measured of it; raises `ProbeFileError` for another one's probe."""
    device = document["device"]
    name = str(device.get("name"))
    if device.get("kind") != "gpu":
        raise ProbeFileError("that probe is of a processor: measure on the GPU that is planned for")
    known = gpu_of(document)
    if known is None or known.name != gpu.name:
        raise ProbeFileError(f"that probe is of {name}, and the plan is for {gpu.name}")
    rates = {rate.name: rate.value for rate in compare_rates(document)}
    flops = {number: rates[number] for number in _NUMBERS if number in rates}
    flops = {number: value for number, value in flops.items() if number in gpu.flops}
    return replace(
        gpu,
        measured_bandwidth_bytes_s=rates.get("bandwidth") or gpu.measured_bandwidth_bytes_s,
        measured_flops={**gpu.measured_flops, **flops},
        measured_source=f"engine probe on {name}, torch {device.get('torch')},"
        f" {str(document.get('at'))[:10]}",
    )


def attention_rows(document: Mapping[str, Any]) -> list[tuple[str, int, list[float | str], float]]:
    """By phase and tokens: plain and fused in seconds, or why not; how many times faster."""
    kept: dict[tuple[str, int], dict[str, float | str]] = {}
    for element in document.get("attention", ()):
        seconds = element.get("seconds")
        value = element.get("failed", "-") if seconds is None else seconds["value"]
        kept.setdefault((element["phase"], element["tokens"]), {})[element["kernel"]] = value
    rows = []
    for (phase, tokens), both in sorted(kept.items(), key=lambda item: (item[0][0], item[0][1])):
        pair = [both.get("plain", "-"), both.get("fused", "-")]
        rows.append((phase, tokens, pair, _speedup_of(pair)))
    return rows


def kv_transport(document: Mapping[str, Any]) -> str | None:
    """Return how UCX reads the largest pieces, by its own table of protocols; `None`: not told.

    A row of the table is `range | description | transports`; the row above a table names what it is
    for, and a read is `ucp_get`.
    """
    is_read, transport = False, None
    for row in document.get("kv_transfer", {}).get("ucx", ()):
        cells = [cell.strip() for cell in row.split("|")]
        if "ucp_" in cells[0]:
            is_read = "ucp_get" in cells[0]
        elif is_read and len(cells) == 3 and cells[0].endswith("inf"):
            transport = f"{cells[2]} ({cells[1]})"
    return transport


def _speedup_of(pair: Sequence[float | str]) -> float:
    plain, fused = pair
    return plain / fused if isinstance(plain, float) and isinstance(fused, float) else 0.0


def _three(entry: Mapping[str, float]) -> tuple[float, float, float]:
    return float(entry["value"]), float(entry["low"]), float(entry["high"])
