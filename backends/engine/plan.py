"""What a GPU can do with a model, before renting it: memory, KV room, floors; arithmetic shown.

Floors are what physics allows, not promises: a decode step reads every active weight once, a
prompt costs two operations per parameter and token. Real engines are 1.2 to 2.4 times slower at
batch 1 (one H200, vLLM 0.25.1, 2026-11-20).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backends.engine.catalog import Gpu, Number
from backends.engine.chunkbudget import prefill_budget
from backends.engine.loadfloor import Load, load_floor
from backends.engine.modelconfig import ModelConfig, read_model
from backends.stepmodel import StepModel

# What vLLM kept of its share beside weights and activations: two measurements (70B shape in AWQ
# and FP8, one H200, 2026-11-20) leave 0.3 GB after the activations below.
_RUNTIME_BYTES = 300_000_000
_SAVES_MEMORY = "such weights save memory, not time"
_SEQUENCES = 256  # the default of --max-num-seqs, for which logits are allocated
_LOGIT_BYTES = 10  # model's number, a float32 copy and its sorted or softmax copy


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its unit and the arithmetic that led to it."""

    name: str
    value: float
    unit: str
    formula: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; `tensor_parallel` `None` takes the fewest GPUs that hold the model."""

    tensor_parallel: int | None = None
    context_tokens: int | None = None
    prompt_tokens: int = 512
    gpu_memory_utilization: float = 0.9
    kv_dtype: Literal["auto", "fp8"] = "auto"
    batched_tokens: int | None = None
    load: Load | None = None  # what users ask, for a floor of what that costs
    tpot_ms: float | None = None  # promised for each further token


@dataclass(frozen=True, slots=True)
class Plan:
    model: str
    gpu: str
    gpus: int
    fits: bool
    figures: tuple[Figure, ...]
    flags: tuple[str, ...]
    warnings: tuple[str, ...]

    def __getitem__(self, name: str) -> float:
        return next(figure.value for figure in self.figures if figure.name == name)


def plan(model_directory: Path, gpu: Gpu, question: Question | None = None) -> Plan:
    """Raises `UnsupportedModel` for a model whose arithmetic is not known."""
    return plan_model(read_model(model_directory), gpu, question or Question())


def plan_model(model: ModelConfig, gpu: Gpu, question: Question) -> Plan:
    context = question.context_tokens or model.context_tokens or 4096
    sizes = (question.tensor_parallel,) if question.tensor_parallel else (1, 2, 4, 8)
    figures: tuple[Figure, ...] = ()
    gpus, fits = sizes[0], False
    for gpus in sizes:  # the last one stays when none fits
        figures = _memory(model, gpu, question, gpus)
        fits = _value(figures, "kv_tokens") >= context
        if fits:
            break
    figures += _speed(model, gpu, question, gpus)
    if fits:
        figures += _load(model, gpu, gpus, context, figures)
    if fits and question.load is not None:
        figures += _floor(model, gpu, gpus, question.load, figures)
    if fits and question.tpot_ms is not None:
        figures += _chunks(question, figures, gpu.best_bandwidth_bytes_s * gpus)
    return Plan(
        model.name,
        gpu.name,
        gpus,
        fits,
        figures,
        _flags(gpus, context, question, figures) if fits else (),
        (*_warnings(model, gpu, gpus, fits=fits, context=context), *_late(question, figures)),
    )


def _memory(model: ModelConfig, gpu: Gpu, question: Question, gpus: int) -> tuple[Figure, ...]:
    element = 1 if question.kv_dtype == "fp8" else model.dtype_bytes
    per_token = model.kv_bytes_per_token(element_bytes=element)
    # A head is never split: more GPUs than kv heads hold copies.
    copies = max(1, gpus // model.kv_heads)
    batched = question.batched_tokens or (8192 if gpu.memory_gib >= 70 else 2048)
    activation = _activation_bytes(model, batched, gpus)
    share = question.gpu_memory_utilization
    budget = gpu.visible_bytes * share
    room = budget - model.weight_bytes / gpus - activation - _RUNTIME_BYTES
    tokens = max(0, int(room * gpus / (per_token * copies)))
    weights = model.weights
    how = (
        "sum of the tensors in *.safetensors"
        if model.stored_bytes
        else f"{model.linear_parameters:,} linear x {weights.bits:g} bits ({weights.method}) / 8"
        f" + {model.table_parameters:,} embedding and output x {model.dtype_bytes} B"
    )
    return (
        Figure("parameters", model.parameters, "", "from the shapes in config.json"),
        Figure("weight_bytes", model.weight_bytes, "B", how),
        Figure(
            "kv_bytes_per_token", per_token, "B",
            f"2 (K and V) x {model.layers} layers x {model.kv_heads} kv heads"
            f" x {model.head_dim} head_dim x {element} B",
        ),
        Figure(
            "activation_bytes", activation, "B",
            f"{batched:,} tokens x (3 x {model.hidden:,} + 3 x {model.intermediate:,} / {gpus})"
            f" x {model.dtype_bytes} B + {_SEQUENCES} logit rows x {model.vocabulary:,}"
            f" x {_LOGIT_BYTES} B",
        ),
        Figure(
            "kv_tokens", tokens, "tokens",
            f"{gpus} x ({gpu.visible_bytes:,} B x {share:g} - {model.weight_bytes:,} / {gpus}"
            f" - {activation:,} - {_RUNTIME_BYTES:,} runtime) / ({per_token:,} B x {copies})",
        ),
    )  # fmt: skip


def _activation_bytes(model: ModelConfig, batched: int, gpus: int) -> int:
    """The peak of one layer: hidden, residual, normed; gate and up together, and their product."""
    layer = batched * (3 * model.hidden + 3 * model.intermediate / gpus) * model.dtype_bytes
    return int(layer) + _SEQUENCES * model.vocabulary * _LOGIT_BYTES


def _speed(model: ModelConfig, gpu: Gpu, question: Question, gpus: int) -> tuple[Figure, ...]:
    bandwidth = gpu.best_bandwidth_bytes_s * gpus
    wanted: tuple[Number, ...] = (model.weights.compute, "bf16", "fp16")
    number = next(number for number in wanted if number in gpu.flops)
    flops = (gpu.best_flops(number) or 0.0) * gpus
    work = 2.0 * model.active_parameters * question.prompt_tokens
    return (
        Figure("bandwidth", bandwidth / gpus / 1e12, "TB/s", f"of one GPU, {gpu.bandwidth_basis}"),
        Figure("compute", flops / gpus / 1e12, "TFLOP/s", f"of one GPU, {gpu.flops_basis(number)}"),
        Figure(
            "decode_floor_s", model.active_weight_bytes / bandwidth, "s",
            f"{model.active_weight_bytes:,} B of weights read per step"
            f" / ({gpus} x {gpu.best_bandwidth_bytes_s / 1e12:g} TB/s)",
        ),
        Figure(
            "prefill_floor_s", work / flops, "s",
            f"2 x {model.active_parameters:,} parameters x {question.prompt_tokens} tokens"
            f" / ({gpus} x {flops / gpus / 1e12:g} TFLOP/s {number})",
        ),
    )  # fmt: skip


def _load(
    model: ModelConfig, gpu: Gpu, gpus: int, context: int, figures: tuple[Figure, ...]
) -> tuple[Figure, ...]:
    kv_tokens = int(_value(figures, "kv_tokens"))
    per_token = _value(figures, "kv_bytes_per_token")
    concurrency = kv_tokens // context
    step_bytes = model.weight_bytes + concurrency * context * per_token
    bandwidth = gpu.best_bandwidth_bytes_s * gpus
    return (
        Figure(
            "concurrency", concurrency, "sequences",
            f"{kv_tokens:,} KV tokens / {context:,} tokens of context, rounded down",
        ),
        Figure(
            "output_ceiling_tokens_s", concurrency * bandwidth / step_bytes, "tokens/s",
            f"{concurrency} sequences x {bandwidth / 1e12:g} TB/s / ({model.weight_bytes:,} B"
            f" of weights + {concurrency} x {context:,} x {per_token:,.0f} B of KV)",
        ),
    )  # fmt: skip


def _floor(
    model: ModelConfig, gpu: Gpu, gpus: int, load: Load, figures: tuple[Figure, ...]
) -> tuple[Figure, ...]:
    per_token = _value(figures, "kv_bytes_per_token")
    prefill_s = 2.0 * model.active_parameters * load.prompt_tokens
    prefill_s /= _value(figures, "compute") * 1e12 * gpus
    found = load_floor(
        load, prefill_s=prefill_s, weight_bytes=model.active_weight_bytes,
        kv_bytes=per_token, bandwidth=gpu.best_bandwidth_bytes_s * gpus,
    )  # fmt: skip
    made = [
        Figure(
            "load_step_s", found.step_s, "s",
            f"({model.active_weight_bytes:,} B + {load.users} users x"
            f" {load.prompt_tokens + load.output_tokens / 2:g} tokens x {per_token:,.0f} B)"
            f" / ({gpus} x {gpu.best_bandwidth_bytes_s / 1e12:g} TB/s)",
        ),
        Figure(
            "load_request_s", found.request_s, "s",
            f"{1e3 * prefill_s:.1f} ms of prefill + {load.output_tokens} steps / {load.users}",
        ),
        Figure("load_tokens_s", found.tokens_s, "tokens/s", "input + output"),
        Figure("load_output_tokens_s", found.output_tokens_s, "tokens/s", "output only"),
    ]  # fmt: skip
    for basis, usd in (
        ("", found.usd_per_million), ("_output", found.usd_per_million_output),
    ):  # fmt: skip
        if usd is not None:
            how = f"${load.usd_per_hour}/h / (load{basis}_tokens_s x 3600) x 1,000,000"
            made.append(Figure(f"load_usd_per_million{basis}", usd, "USD", how))
    return tuple(made)


def _chunks(
    question: Question, figures: tuple[Figure, ...], bandwidth: float
) -> tuple[Figure, ...]:
    """0 where even a step without prompts is longer than promised."""
    assert question.tpot_ms is not None
    prompt_s = _value(figures, "prefill_floor_s") / question.prompt_tokens
    per_token = _value(figures, "kv_bytes_per_token")
    step = StepModel(_value(figures, "decode_floor_s"), 0.0, per_token / bandwidth, prompt_s, 0.0)
    kv_tokens = int(_value(figures, "kv_tokens"))
    found = prefill_budget(
        step, tpot_s=question.tpot_ms / 1e3, kv_tokens=kv_tokens, max_sequences=_SEQUENCES
    )
    how = (
        f"({question.tpot_ms:g} ms - decode_floor_s - {kv_tokens:,} / 2 KV tokens x"
        f" {per_token:,.0f} B / {bandwidth / 1e12:g} TB/s) / {1e6 * prompt_s:.3g} us a token,"
        " rounded down; real steps are longer: at most"
    )
    return (Figure("prefill_budget_tokens", found or 0, "tokens", how),)


def _late(question: Question, figures: tuple[Figure, ...]) -> tuple[str, ...]:
    if all(one.value for one in figures if one.name == "prefill_budget_tokens"):
        return ()
    words = f"{question.tpot_ms:g} ms a token is not kept beside a cache that is half full"
    return (f"{words}: promise more, or take more or faster GPUs",)


def _flags(
    gpus: int, context: int, question: Question, figures: tuple[Figure, ...]
) -> tuple[str, ...]:
    flags = ["--max-model-len", str(context)]
    flags += ["--gpu-memory-utilization", f"{question.gpu_memory_utilization:g}"]
    if gpus > 1:
        flags += ["--tensor-parallel-size", str(gpus)]
    if question.kv_dtype == "fp8":
        flags += ["--kv-cache-dtype", "fp8"]
    for one in figures:
        if one.name == "prefill_budget_tokens" and one.value:
            flags += ["--max-num-batched-tokens", f"{one.value:g}"]
    return tuple(flags)


def _warnings(
    model: ModelConfig, gpu: Gpu, gpus: int, *, fits: bool, context: int
) -> tuple[str, ...]:
    found = []
    if not fits:
        found.append(
            f"does not fit: {gpus} x {gpu.name} cannot hold the weights and one sequence of"
            f" {context:,} tokens; take more or larger GPUs, a quantized model or less context"
        )
    if gpus > 1 and not gpu.nvlink:
        found.append(
            f"{gpu.name} is joined by {gpu.interconnect} only ({gpu.interconnect_bytes_s / 1e9:g}"
            " GB/s): tensor parallelism spends much of each step in all-reduces"
        )
    compute = model.weights.compute
    if compute not in gpu.flops:
        found.append(
            f"{gpu.name} has no {compute} units: "
            + ("start vLLM with --dtype half" if compute == "bf16" else _SAVES_MEMORY)
        )
    if max(gpus, model.kv_heads) % min(gpus, model.kv_heads):
        found.append(f"vLLM refuses this: {model.kv_heads} kv heads do not divide by {gpus} GPUs")
    elif gpus > model.kv_heads:
        found.append(f"{gpus} GPUs share {model.kv_heads} kv heads: KV is stored more than once")
    return tuple(found)


def _value(figures: tuple[Figure, ...], name: str) -> float:
    return next(figure.value for figure in figures if figure.name == name)
