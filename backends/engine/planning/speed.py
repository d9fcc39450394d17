"""Minimum times by memory bandwidth, arithmetic and links, for one request and for many.

N tensor-parallel GPUs share each layer: one request is N times as fast. Pipeline stages run one
after the other: one request gains nothing, and only many requests keep all stages busy. A full
pipeline of P stages works on P groups of sequences, each of which reads all weights once.
"""

from backends.engine.catalog import GpuSpec, Number
from backends.engine.chunkbudget import prefill_budget
from backends.engine.loadfloor import UserLoad, load_floor
from backends.engine.modelconfig import ModelConfig
from backends.engine.planning.memory import SEQUENCES
from backends.engine.planning.question import (
    Figures,
    ParallelLayout,
    PlanFigure,
    PlanRequest,
    value,
)
from backends.stepmodel import FittedStepModel

# Measured time of a step full of prompts, divided by its floor: 28.8, 52.2 and 199 ms for 960,
# 2,048 and 8,192 tokens are 1.35, 1.26 and 1.24 (8B in bf16, one H200, vLLM 0.25.1, 2026-11-23).
OVER_FLOORS = 1.3


def number_of(model: ModelConfig, gpu: GpuSpec) -> Number:
    """Return the number format in which this GPU multiplies the model's weights."""
    wanted: tuple[Number, ...] = (model.weights.compute, "bf16", "fp16")
    return next(number for number in wanted if number in gpu.flops)


def speed(
    model: ModelConfig, gpu: GpuSpec, question: PlanRequest, layout: ParallelLayout
) -> Figures:
    number, tensor = number_of(model, gpu), layout.tensor
    flops = gpu.best_flops(number) or 0.0
    read = gpu.best_bandwidth_bytes_s
    work = 2.0 * model.active_parameters * question.prompt_tokens
    return (
        PlanFigure("bandwidth", read / 1e12, "TB/s", f"of one GPU, {gpu.bandwidth_basis}"),
        PlanFigure("compute", flops / 1e12, "TFLOP/s", f"of one GPU, {gpu.flops_basis(number)}"),
        PlanFigure(
            "decode_floor_s", model.active_weight_bytes / (read * tensor), "s",
            f"{model.active_weight_bytes:,} B of weights read per step"
            f" / ({tensor} x {read / 1e12:g} TB/s)",
        ),
        PlanFigure(
            "prefill_floor_s", work / (flops * tensor), "s",
            f"2 x {model.active_parameters:,} parameters x {question.prompt_tokens} tokens"
            f" / ({tensor} x {flops / 1e12:g} TFLOP/s {number})",
        ),
        *_links(model, gpu, question.prompt_tokens, layout),
    )  # fmt: skip


def _links(model: ModelConfig, gpu: GpuSpec, prompt_tokens: int, layout: ParallelLayout) -> Figures:
    """Return the times of all-reduces by bytes over links, empty on a single GPU.

    The start of each all-reduce takes extra time, which `engine probe` measures.
    """
    if layout.tensor == 1:
        return ()
    each_s = _allreduced_s(model, gpu, layout)
    return (
        PlanFigure(
            "allreduce_token_s", each_s, "s",
            f"2 x {model.layers} layers x 2 x {layout.tensor - 1} / {layout.tensor} x"
            f" {model.hidden:,} x {model.dtype_bytes} B /"
            f" ({gpu.interconnect} {gpu.interconnect_bytes_s / 2e9:g} GB/s each way)",
        ),
        PlanFigure(
            "allreduce_prefill_s", each_s * prompt_tokens, "s",
            f"{prompt_tokens} tokens x allreduce_token_s",
        ),
    )  # fmt: skip


def _allreduced_s(model: ModelConfig, gpu: GpuSpec, layout: ParallelLayout) -> float:
    """Return the link time of one token's ring all-reduces, in seconds.

    Each layer has two: after attention and after the MLP.
    """
    moved = 2 * (layout.tensor - 1) / layout.tensor * model.hidden * model.dtype_bytes
    return 2 * model.layers * moved / (gpu.interconnect_bytes_s / 2)


def ceiling(
    model: ModelConfig, gpu: GpuSpec, layout: ParallelLayout, context: int, figures: Figures
) -> Figures:
    kv_tokens = int(value(figures, "kv_tokens"))
    per_token = value(figures, "kv_bytes_per_token")
    concurrency = kv_tokens // context
    weights = _read(model, layout, concurrency)
    read = weights * layout.pipeline + concurrency * context * per_token
    bandwidth = gpu.best_bandwidth_bytes_s * layout.gpus
    times = "" if layout.pipeline == 1 else f"{layout.pipeline} x "
    return (
        PlanFigure(
            "concurrency", concurrency, "sequences",
            f"{kv_tokens:,} KV tokens / {context:,} tokens of context, rounded down",
        ),
        PlanFigure(
            "output_ceiling_tokens_s", concurrency * bandwidth / read, "tokens/s",
            f"{concurrency} sequences x {bandwidth / 1e12:g} TB/s / ("
            f"{times}{weights:,} B of weights{_experts(model)} + {concurrency} x {context:,} x"
            f" {per_token:,.0f} B of KV)",
        ),
    )  # fmt: skip


def floor_of(
    model: ModelConfig, gpu: GpuSpec, layout: ParallelLayout, load: UserLoad, figures: Figures
) -> Figures:
    """Return the minimum time and cost of serving a load."""
    per_token = value(figures, "kv_bytes_per_token")
    prefill_s = 2.0 * model.active_parameters * load.prompt_tokens
    prefill_s /= value(figures, "compute") * 1e12 * layout.gpus
    tokens = load.prompt_tokens + load.output_tokens
    links_s = tokens * _allreduced_s(model, gpu, layout) / layout.pipeline
    weights = layout.pipeline * _read(model, layout, load.users)
    found = load_floor(
        load, prefill_s=prefill_s + links_s, weight_bytes=weights,
        kv_bytes=per_token, bandwidth=gpu.best_bandwidth_bytes_s * layout.gpus,
    )  # fmt: skip
    made = [
        PlanFigure(
            "load_step_s", found.step_s, "s",
            f"({weights:,} B{_experts(model)} + {load.users} users x"
            f" {load.prompt_tokens + load.output_tokens / 2:g} tokens x {per_token:,.0f} B)"
            f" / ({layout.gpus} x {gpu.best_bandwidth_bytes_s / 1e12:g} TB/s)",
        ),
        PlanFigure(
            "load_request_s", found.request_s, "s",
            f"{1e3 * prefill_s:.1f} ms of prefill{_by_link(links_s)} +"
            f" {load.output_tokens} steps / {load.users}",
        ),
        PlanFigure("load_tokens_s", found.tokens_s, "tokens/s", "input + output"),
        PlanFigure("load_output_tokens_s", found.output_tokens_s, "tokens/s", "output only"),
    ]  # fmt: skip
    for basis, usd in (
        ("", found.usd_per_million), ("_output", found.usd_per_million_output),
    ):  # fmt: skip
        if usd is not None:
            how = f"${load.usd_per_hour}/h / (load{basis}_tokens_s x 3600) x 1,000,000"
            made.append(PlanFigure(f"load_usd_per_million{basis}", usd, "USD", how))
    return tuple(made)


def _read(model: ModelConfig, layout: ParallelLayout, sequences: int) -> int:
    """Return the weight bytes that one group of the sequences reads in all stages.

    The sequences form as many groups as the pipeline has stages.
    """
    return model.read_weight_bytes(sequences / layout.pipeline)


def _experts(model: ModelConfig) -> str:
    return " with the experts that so many choose" if model.experts else ""


def _by_link(seconds: float) -> str:
    return f" + {1e3 * seconds:.1f} ms of all-reduces" if seconds else ""


def tpot_figures(
    model: ModelConfig,
    question: PlanRequest,
    gpu: GpuSpec,
    layout: ParallelLayout,
    figures: Figures,
) -> Figures:
    """Return the token budget that keeps the TPOT limit; 0 if an empty step takes longer."""
    if question.tpot_ms is None:
        return ()
    bandwidth = gpu.best_bandwidth_bytes_s * layout.tensor
    per_token = value(figures, "kv_bytes_per_token") / layout.pipeline
    step = step_floors(model, question, gpu, layout, figures)
    prompt_s, kv_tokens = step.d_s, int(value(figures, "kv_tokens"))
    found = prefill_budget(
        step,
        tpot_s=question.tpot_ms / 1e3 / OVER_FLOORS,
        kv_tokens=kv_tokens,
        max_sequences=SEQUENCES,
    )
    how = (
        f"({question.tpot_ms:g} ms / {OVER_FLOORS:g}, which steps were measured to take over their"
        f" floors, - {_all_read(model)} - {kv_tokens:,} / 2 KV tokens x"
        f" {per_token:,.0f} B / {bandwidth / 1e12:g} TB/s) / {1e6 * prompt_s:.3g} us a token,"
        " rounded down"
    )
    made = PlanFigure("prefill_budget_tokens", found or 0, "tokens", how)
    return (made, *_sequences(model, question, step, (kv_tokens, found)))


def step_floors(
    model: ModelConfig,
    question: PlanRequest,
    gpu: GpuSpec,
    layout: ParallelLayout,
    figures: Figures,
) -> FittedStepModel:
    """Return the minimum time of a step by bytes read and arithmetic, in seconds."""
    bandwidth = gpu.best_bandwidth_bytes_s * layout.tensor
    prompt_s = value(figures, "prefill_floor_s") / question.prompt_tokens
    per_token = value(figures, "kv_bytes_per_token") / layout.pipeline
    read_s = model.weight_bytes / bandwidth  # also in mixtures: prompts use all experts
    return FittedStepModel(read_s, 0.0, per_token / bandwidth, prompt_s, 0.0)


def _all_read(model: ModelConfig) -> str:
    return "the time to read all experts" if model.experts else "decode_floor_s"


def _sequences(
    model: ModelConfig, question: PlanRequest, step: FittedStepModel, room: tuple[int, int | None]
) -> Figures:
    """Return how many requests can decode at once within the TPOT limit and the KV cache.

    Each takes one token of the step's budget: vLLM does not start with more sequences than tokens.
    """
    load, (kv_tokens, budget) = question.load, room
    if load is None or question.tpot_ms is None:
        return ()
    context = load.prompt_tokens + load.output_tokens / 2
    left_s = max(
        0.0, question.tpot_ms / 1e3 - step.step_s(sequences=0, context_tokens=0, prefill_tokens=0)
    )
    each_s = step.step_s(sequences=0, context_tokens=context, prefill_tokens=0) - step.a_s
    within = int(left_s / each_s) if each_s > 0 else 0
    held = kv_tokens // (load.prompt_tokens + load.output_tokens)
    how = (
        f"the fewer of ({question.tpot_ms:g} ms - {_all_read(model)}) / {1e6 * each_s:.3g} us of KV"
        f" for {context:g} tokens and {kv_tokens:,} KV tokens /"
        f" {load.prompt_tokens + load.output_tokens}; without prompts: at most"
    )
    found = min(within, held)
    if budget is not None and budget < found:
        found, how = budget, f"one for each token of prefill_budget_tokens; else {found:,}: {how}"
    return (PlanFigure("sequences_in_promise", found, "sequences", how),)
