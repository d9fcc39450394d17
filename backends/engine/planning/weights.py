"""Choice of the weight format for a GPU, by the cost of serving a load in each format.

Each format is planned on the fewest GPUs that hold it and compared by GPU-seconds per million
tokens; the GPU's rate gives dollars. Decode steps read weights at measured shares of a copy's
bandwidth: 0.97 with 8 bits, 0.67 with 4 (70B shape, one H200, vLLM 0.25.1, batch 1, 2026-11-22).
16 bits were not measured and count as 8. Usual results:

* 8 bits for small models on GPUs that multiply 8 bits (FP8 since Hopper and Ada, INT8 since
  Turing): prompts have twice the FLOP/s, and the KV cache is most of what a step reads;
* 4 bits, multiplied in 16, if they need one GPU less (70B on 80 GB), or for a single user.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from backends.engine.catalog import GpuSpec, Number
from backends.engine.loadfloor import UserLoad
from backends.engine.modelconfig import ModelConfig, Weights
from backends.engine.planning.question import SIZES, Figures, ParallelLayout, PlanRequest, value
from backends.engine.planning.refusals import refusals

USUAL = UserLoad(users=32)
READ_AT = (
    "weights are read at 0.97 of a copy's bandwidth, those of 4 bits at 0.67 and multiplied in 16"
    " bits (measured: 70B, one H200); ask `engine eval` what a format costs in quality"
)
_READ_AT = {8: 0.97, 4: 0.67}  # share of a copy's bandwidth, by bits per weight
_FORMATS: tuple[tuple[str, Weights], ...] = (
    ("bf16", Weights("none", 16.0, "bf16")),
    ("fp8", Weights("fp8", 8.0, "fp8")),
    ("int8", Weights("compressed-tensors", 8.0, "int8")),
    ("awq", Weights("awq", 4.25, "bf16")),
)
_UNITS: dict[str, Number] = {"fp8": "fp8", "int8": "int8"}
Planned = Callable[[ModelConfig, GpuSpec, PlanRequest], tuple[bool, Figures]]


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """A format on the fewest GPUs that hold it; times are None if 8 GPUs do not hold it."""

    weights: str
    gpus: int
    weight_bytes: float
    kv_tokens: int
    step_s: float | None  # with one user
    gpu_s_per_million: float | None  # per million input and output tokens, at the load
    advised: bool = False


def choices(
    model: ModelConfig, gpu: GpuSpec, question: PlanRequest, planned: Planned
) -> tuple[WeightFormat, ...]:
    """Return the formats that this GPU multiplies, with the advised one marked."""
    load = question.load or USUAL
    asked = replace(question, load=load, tpot_ms=None, draft=None, pipeline_parallel=1)
    found = [
        _choice(name, replace(model, weights=weights, stored_bytes=None), gpu, asked, planned)
        for name, weights in _FORMATS
        if _is_multiplied(name, gpu)
    ]
    best = min(
        (format_ for format_ in found if format_.gpu_s_per_million is not None),
        key=lambda format_: format_.gpu_s_per_million or 0.0,
        default=None,
    )
    return tuple(replace(format_, advised=format_ is best) for format_ in found)


def _is_multiplied(name: str, gpu: GpuSpec) -> bool:
    if name == "int8" and "fp8" in gpu.flops:
        return False  # equal bytes and FLOP/s, but INT8 needs calibration
    return name not in _UNITS or _UNITS[name] in gpu.flops


def _choice(
    name: str, model: ModelConfig, gpu: GpuSpec, question: PlanRequest, planned: Planned
) -> WeightFormat:
    """Plan a format on the fewest GPUs whose KV cache also holds all users at once."""
    assert question.load is not None
    load = question.load
    wanted = load.users * (load.prompt_tokens + load.output_tokens)
    sizes = [size for size in SIZES if not refusals(model, ParallelLayout(size))]
    for tensor in sizes:
        fits, figures = planned(model, gpu, replace(question, tensor_parallel=tensor))
        kv_tokens = int(value(figures, "kv_tokens"))
        if fits and kv_tokens >= wanted:
            step_s, cost = _cost(model, gpu, tensor, load, figures)
            return WeightFormat(name, tensor, model.weight_bytes, kv_tokens, step_s, cost)
    return WeightFormat(name, sizes[-1], model.weight_bytes, kv_tokens, None, None)


def _cost(
    model: ModelConfig, gpu: GpuSpec, gpus: int, load: UserLoad, figures: Figures
) -> tuple[float, float]:
    """Return the step seconds of one user, and GPU-seconds per million tokens of the load."""
    copied = gpu.best_bandwidth_bytes_s * gpus
    read = copied * _READ_AT[8 if model.weights.bits >= 8 else 4]
    alone_s, weights_s = (model.read_weight_bytes(users) / read for users in (1, load.users))
    cached = (load.prompt_tokens + load.output_tokens / 2) * value(figures, "kv_bytes_per_token")
    step_s = weights_s + load.users * cached / copied
    flops = value(figures, "compute") * 1e12 * gpus
    prefill_s = 2.0 * model.active_parameters * load.prompt_tokens / flops
    tokens = load.prompt_tokens + load.output_tokens
    links_s = tokens * sum(figure.value for figure in figures if figure.name == "allreduce_token_s")
    request_s = prefill_s + links_s + load.output_tokens * step_s / load.users
    return alone_s, gpus * request_s / tokens * 1e6
