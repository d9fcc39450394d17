"""Plan of a model on a GPU before it is rented: memory, KV headroom, floors, arithmetic.

Floors are the limits of physics: a decode step reads every active weight once, and a prompt takes
two operations per parameter and token. Real engines are 1.2 to 2.4 times slower at batch 1 (one
H200, vLLM 0.25.1, 2026-11-20).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from backends.engine.catalog import GpuSpec
from backends.engine.modelconfig import ModelConfig
from backends.engine.planning import drafting
from backends.engine.planning.cautions import cautions, mixed_gpus_note, weakest_gpu
from backends.engine.planning.memory import memory
from backends.engine.planning.question import SIZES, Figures, ParallelLayout, PlanRequest, value
from backends.engine.planning.refusals import refusals
from backends.engine.planning.roles import RoleLayout, role_layouts
from backends.engine.planning.scaling import ScaledLayout, scaling
from backends.engine.planning.speed import ceiling, floor_of, speed, step_floors, tpot_figures
from backends.engine.planning.weights import WeightFormat, choices


@dataclass(frozen=True, slots=True)
class EnginePlan:
    model: str
    gpu: str
    gpus: int
    layout: ParallelLayout
    fits: bool  # in memory
    refused: tuple[str, ...]  # reasons, other than memory, why vLLM would not start
    figures: Figures
    flags: tuple[str, ...]
    warnings: tuple[str, ...]
    choices: tuple[WeightFormat, ...]  # formats of the weights
    scaling: tuple[ScaledLayout, ...]
    roles: tuple[RoleLayout, ...]  # for several replicas, if a TPOT is promised
    usd_per_gpu_hour: Decimal | None  # the given rate, else a public list price

    def __getitem__(self, name: str) -> float:
        return value(self.figures, name)


def plan_model(model: ModelConfig, gpus: Sequence[GpuSpec], question: PlanRequest) -> EnginePlan:
    """Plan a model on GPUs. A mixed set counts as its weakest GPU."""
    gpu = weakest_gpu(gpus)
    layout, fits, figures = _plan_layout(model, gpu, question)
    refused = refusals(model, layout)
    warned = (*mixed_gpus_note(gpus), *cautions(model, gpu, layout, question, figures))
    if question.draft is not None:
        figures += drafting.drafting(gpu, question.draft, layout, figures)
        refused += drafting.refusals(model, question.draft)
        warned += drafting.warnings(model, question.draft, figures)
    if not fits:
        warned = (_too_large(gpu, layout, _context(model, question)), *warned)
    starts, rate = fits and not refused, _rate(gpu, layout, question)
    step = step_floors(model, question, gpu, layout, figures)
    return EnginePlan(
        model.name,
        gpu.name,
        layout.gpus,
        layout,
        fits,
        refused,
        figures,
        _flags(layout, _context(model, question), question, figures) if starts else (),
        warned,
        choices(model, gpu, question, _split),
        scaling(model, gpu, question, _split),
        role_layouts(step, question, layout, figures, rate) if starts else (),
        rate,
    )


def _rate(gpu: GpuSpec, layout: ParallelLayout, question: PlanRequest) -> Decimal | None:
    if question.load is not None and question.load.usd_per_hour is not None:
        return question.load.usd_per_hour / layout.gpus
    return None if gpu.price is None else gpu.price.low_usd_per_hour


def _context(model: ModelConfig, question: PlanRequest) -> int:
    return question.context_tokens or model.context_tokens or 4096


def _plan_layout(
    model: ModelConfig, gpu: GpuSpec, question: PlanRequest
) -> tuple[ParallelLayout, bool, Figures]:
    """Return layout, whether it fits, and figures, on the requested or the fewest GPUs.

    The fewest are those that hold the weights and one sequence of full context.
    """
    split = [size for size in SIZES if not refusals(model, ParallelLayout(size))]
    sizes = [question.tensor_parallel] if question.tensor_parallel else split
    context = _context(model, question)
    figures: Figures = ()
    layout, fits = ParallelLayout(sizes[0], question.pipeline_parallel), False
    for tensor in sizes:  # the largest is kept if none fits
        layout = ParallelLayout(tensor, question.pipeline_parallel)
        figures = memory(model, gpu, question, layout)
        fits = value(figures, "kv_tokens") >= context
        if fits:
            break
    figures += speed(model, gpu, question, layout)
    if fits:
        figures += ceiling(model, gpu, layout, context, figures)
        if question.load is not None:
            figures += floor_of(model, gpu, layout, question.load, figures)
        figures += tpot_figures(model, question, gpu, layout, figures)
    return layout, fits, figures


def _split(model: ModelConfig, gpu: GpuSpec, question: PlanRequest) -> tuple[bool, Figures]:
    return _plan_layout(model, gpu, question)[1:]


def _flags(
    layout: ParallelLayout, context: int, question: PlanRequest, figures: Figures
) -> tuple[str, ...]:
    flags = ["--max-model-len", str(context)]
    flags += ["--gpu-memory-utilization", f"{question.gpu_memory_utilization:g}"]
    if layout.tensor > 1:
        flags += ["--tensor-parallel-size", str(layout.tensor)]
    if layout.pipeline > 1:
        flags += ["--pipeline-parallel-size", str(layout.pipeline)]
    if question.kv_dtype == "fp8":
        flags += ["--kv-cache-dtype", "fp8"]
    if question.draft is not None:
        flags += drafting.flags(question.draft)
    for name, flag in (
        ("prefill_budget_tokens", "--max-num-batched-tokens"),
        ("sequences_in_promise", "--max-num-seqs"),
    ):
        flags += [
            word
            for figure in figures
            if figure.name == name and figure.value
            for word in (flag, f"{figure.value:g}")
        ]
    return tuple(flags)


def _too_large(gpu: GpuSpec, layout: ParallelLayout, context: int) -> str:
    return (
        f"does not fit: {layout.gpus} x {gpu.name} cannot hold the weights and one sequence of"
        f" {context:,} tokens; take more or larger GPUs, a quantized model or less context"
    )
