"""Results of `engine probe`, measured by the engine's interpreter and used by `plan`.

torch is in the engine's environment only, so a separate program measures (`inside/probe.py`). Its
results replace the catalogue's figures for the same GPU.
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
    """A probe failed, a file holds no probe, or the probe is of another GPU."""


@dataclass(frozen=True, slots=True)
class ComparedRate:
    """Measured rate and its range. `sheet` is the data sheet's rate, `None` if not stated."""

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
    """Parameters of a probe: parts of the program to run, prompt lengths for attention.

    All parts run if `parts` is empty.
    """

    environment: Environment
    flavour: Flavour
    parts: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    small: bool = False
    timeout_s: float = 600.0

    @property
    def arguments(self) -> list[str]:
        # -P keeps files beside the script from being imported in place of packages.
        words = [str(self.environment.python), "-P", str(_SCRIPT)]
        words += ["--only", *self.parts] if self.parts else []
        words += ["--tokens", *map(str, self.tokens)] if self.tokens else []
        return [*words, "--small"] if self.small else words


def measure(request: ProbeRequest, on_line: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Run the probe and return its document. Blocking.

    Raises `ProbeFileError` with the last lines of its output when it fails.
    """
    environ = variables(os.environ, flavour=request.flavour)
    code, text = run(request.arguments, environ, on_line, timeout_s=request.timeout_s)
    lines = text.splitlines()
    found = next((line for line in reversed(lines) if line.startswith('{"breakeven_probe"')), None)
    if code != 0 or found is None:
        raise ProbeFileError("the probe failed:\n" + "\n".join(lines[-6:]))
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
        raise ProbeFileError(f"{where} has no `engine probe` result of format {FORMAT}")
    if not isinstance(document.get("device"), dict):
        raise ProbeFileError(f"{where} names no device")
    return document


def gpu_of(document: Mapping[str, Any]) -> GpuSpec | None:
    """Return the catalogue's entry of the measured GPU, or `None` for a CPU or unknown GPU."""
    device = document["device"]
    if device.get("kind") != "gpu":
        return None
    try:
        return find_gpu(str(device.get("name")))
    except UnknownGpu:
        return None


def compare_rates(document: Mapping[str, Any]) -> list[ComparedRate]:
    """Return the measured rates with the data sheet's: bandwidth in bytes/s, and FLOP/s."""
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
    """Return the GPU with its measured rates. Raises `ProbeFileError` for another GPU's probe."""
    device = document["device"]
    name = str(device.get("name"))
    if device.get("kind") != "gpu":
        words = "run `breakeven engine probe` on the GPU of the plan"
        raise ProbeFileError(f"this probe was measured on a CPU: {words}")
    known = gpu_of(document)
    if known is None or known.name != gpu.name:
        raise ProbeFileError(f"this probe was measured on {name}, but the plan is for {gpu.name}")
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
    """Return (phase, tokens, [plain, fused], speedup) of the attention kernels.

    Plain and fused are seconds, or the reason why they were not measured; the speedup is then 0.
    """
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
    """Return how UCX reads the largest pieces, or `None` if its protocol table does not say.

    Rows of the table are `range | description | transports`. The row above each table names its
    operation; a read is `ucp_get`.
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
