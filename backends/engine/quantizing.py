"""Quantization of a model for `breakeven engine quantize`, by one of two quantizers.

llm-compressor is used if it is installed. It needs another version of compressed-tensors than vLLM,
so it is installed in its own folder (`compressor.py`), which precedes the engine's packages for
this program only. The project's own quantizer (`training/quantize.py`) supports Llama's
architecture only and is slow. It is used only if the user selects it.

Source: https://docs.vllm.ai/projects/llm-compressor
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from backends.engine.compressor import has_compressor
from backends.engine.environment import Environment, Flavour, variables
from backends.engine.packages import run

Method = Literal["fp8", "int8", "gptq", "awq", "fp8-kv"]
Quantizer = Literal["llm-compressor", "breakeven"]
CALIBRATED = frozenset({"gptq", "awq", "fp8-kv"})
OWN_METHODS = frozenset({"fp8", "int8", "gptq", "awq"})
_HERE = Path(__file__).parent
_PACKAGE_ROOT = _HERE.parents[1]
_SCRIPT = _HERE / "inside" / "compress.py"
_OWN = "backends.engine.training.quantize"


class QuantizeError(ValueError):
    """A model cannot be quantized, or a run failed; the text names the setting and the remedy."""


@dataclass(frozen=True, slots=True)
class QuantizeRequest:
    """Parameters of a quantization: `model` is the input folder, `out` the folder to be made.

    `compressor` is the folder of llm-compressor, `rows` the maximum number of prompts.
    """

    environment: Environment
    flavour: Flavour
    model: Path
    out: Path
    method: Method
    prompts: Path | None
    compressor: Path
    by: Quantizer = "llm-compressor"
    rows: int = 512
    timeout_s: float = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """Result of a quantization. Bytes are of the weights; `versions` are of the programs used."""

    model: str
    out: str
    method: Method
    by: Quantizer
    bytes_before: int
    bytes_after: int
    seconds: float | None = None
    calibration: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str | None] = field(default_factory=dict)


def check(request: QuantizeRequest) -> None:
    """Check a request before it runs: files, formats, programs. Raises `QuantizeError`."""
    config = _config(request.model)
    if "quantization_config" in config:
        kind = config["quantization_config"].get("quant_method", "of some kind")
        raise QuantizeError(
            f"MODEL {request.model} is quantized already ({kind}): name the 16-bit model"
        )
    if request.out.exists():
        raise QuantizeError(f"OUT {request.out} exists: name a new folder")
    if not request.out.parent.is_dir() or not os.access(request.out.parent, os.W_OK):
        raise QuantizeError(f"OUT {request.out}: {request.out.parent} is not a writable folder")
    if request.method in CALIBRATED and request.prompts is None:
        raise QuantizeError(
            f"--method {request.method} is calibrated: --prompts FILE with your own prompts"
        )
    if not request.environment.python.exists():
        raise QuantizeError(
            f"--engine {request.environment.directory} holds no engine: breakeven engine install"
        )
    if request.by == "breakeven":
        _check_own(request, config)
    elif not has_compressor(request.environment, request.compressor):
        raise QuantizeError(
            f"--compressor {request.compressor} has no llm-compressor, which is optional:"
            " breakeven engine install --compressor adds it; or --by breakeven, the project's own"
            " quantizer (Llama's shape, no KV cache, slow)"
        )


def quantize(request: QuantizeRequest, say: Callable[[str], None]) -> QuantizedModel:
    """Quantize a model into `out`. Blocking. Raises `QuantizeError`.

    `out` is complete or does not exist: the result is written to another folder and renamed.
    """
    check(request)
    partial = request.out.with_name(request.out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        done = _run(request, partial, say)
        after = weight_bytes(partial)
        if not after:
            raise QuantizeError(f"OUT: {request.by} wrote no weights in {partial}")
        partial.rename(request.out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return QuantizedModel(
        str(request.model), str(request.out), request.method, request.by,
        weight_bytes(request.model), after,
        done.get("seconds"), done.get("calibration", {}), done.get("versions", {}),
    )  # fmt: skip


def weight_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def command(request: QuantizeRequest, out: Path) -> list[str]:
    """Return the command that quantizes a model into the folder `out`.

    `-P` keeps files beside the script from being imported in place of packages.
    """
    python = str(request.environment.python)
    program = ["-P", str(_SCRIPT)] if request.by == "llm-compressor" else ["-P", "-m", _OWN]
    words = [python, *program, str(request.model), str(out), "--method", request.method]
    if request.prompts is not None:
        words += ["--prompts", str(request.prompts)]
    return [*words, "--rows", str(request.rows)] if request.by == "llm-compressor" else words


def environ(request: QuantizeRequest, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the quantizer.

    They are the engine's, with the quantizer's packages before the engine's own in PYTHONPATH.
    """
    first = request.compressor if request.by == "llm-compressor" else _PACKAGE_ROOT
    return variables(base, flavour=request.flavour) | {"PYTHONPATH": str(first.resolve())}


def _run(request: QuantizeRequest, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    done: dict[str, Any] = {}

    def read(line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        if isinstance(told, dict) and "stage" in told:
            say(f"{told['stage']} ({told['seconds']:.0f} s)")
        elif isinstance(told, dict) and isinstance(told.get("done"), dict):
            done.update(told["done"])

    say(f"loading {request.by}")
    code, tail = run(
        command(request, out), environ(request, os.environ), read, timeout_s=request.timeout_s
    )
    if code != 0:
        last = "\n".join(tail.splitlines()[-8:])
        raise QuantizeError(f"--method {request.method}: {request.by} ended with {code}:\n{last}")
    return done


def _config(model: Path) -> dict[str, Any]:
    path = model / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise QuantizeError(
            f"MODEL {model} is not a model folder: {path}: {error.strerror}"
        ) from None
    except ValueError as error:
        raise QuantizeError(f"MODEL {model}: {path} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise QuantizeError(f"MODEL {model}: {path} must hold a JSON object")
    if not weight_bytes(model):
        raise QuantizeError(f"MODEL {model} has no *.safetensors: the weights are missing")
    return config


def _check_own(request: QuantizeRequest, config: Mapping[str, Any]) -> None:
    if request.method not in OWN_METHODS:
        raise QuantizeError(
            f"--method {request.method} needs --by llm-compressor: the own quantizer makes"
            f" {', '.join(sorted(OWN_METHODS))}"
        )
    if config.get("architectures") != ["LlamaForCausalLM"]:
        raise QuantizeError("--by breakeven quantizes LlamaForCausalLM alone: --by llm-compressor")
    if not (request.model / "model.safetensors").is_file():
        raise QuantizeError(
            f"--by breakeven reads one model.safetensors, which {request.model} does not have"
        )
