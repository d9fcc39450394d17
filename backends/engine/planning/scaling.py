"""Speed of one model on 1 to 8 GPUs, by tensor parallelism, pipeline stages and both.

Sizes are 1, 2, 4 and 8 GPUs. The table shows the gain for one user (tensor parallelism only) and
for many. Times are floors of memory reads, arithmetic and link bytes. A real all-reduce of a decode
step takes about 10 us at any size, twice per layer, so one user gains less than the table shows.
"""

from dataclasses import dataclass, replace

from backends.engine.catalog import GpuSpec
from backends.engine.modelconfig import ModelConfig
from backends.engine.planning.question import SIZES, ParallelLayout, PlanRequest, value
from backends.engine.planning.refusals import refusals
from backends.engine.planning.weights import USUAL, Planned


@dataclass(frozen=True, slots=True)
class ScaledLayout:
    """A layout and its speed; times and rates are None if the model or the load does not fit."""

    layout: str
    gpus: int
    kv_tokens: int
    prefill_s: float | None = None  # one prompt, including links
    tokens_s_alone: float | None = None
    tokens_s: float | None = None  # output tokens of all users
    efficiency: float | None = None  # `tokens_s` per GPU, relative to the smallest layout that fits


def scaling(
    model: ModelConfig, gpu: GpuSpec, question: PlanRequest, planned: Planned
) -> tuple[ScaledLayout, ...]:
    load = question.load or USUAL
    asked = replace(question, load=load, tpot_ms=None, draft=None)
    found = [_scale_layout(model, gpu, asked, layout, planned) for layout in _layouts(model)]
    first = next((layout for layout in found if layout.tokens_s), None)
    if first is None or first.tokens_s is None:
        return tuple(found)
    base = first.tokens_s / first.gpus
    return tuple(
        layout
        if layout.tokens_s is None
        else replace(layout, efficiency=layout.tokens_s / layout.gpus / base)
        for layout in found
    )


def _layouts(model: ModelConfig) -> list[ParallelLayout]:
    both = [ParallelLayout(tensor, pipeline) for tensor in SIZES for pipeline in SIZES]
    few = [side for side in both if side.gpus <= SIZES[-1] and not refusals(model, side)]
    return sorted(few, key=lambda layout: (layout.gpus, layout.pipeline))


def _scale_layout(
    model: ModelConfig,
    gpu: GpuSpec,
    question: PlanRequest,
    layout: ParallelLayout,
    planned: Planned,
) -> ScaledLayout:
    assert question.load is not None
    split = replace(
        question, tensor_parallel=layout.tensor, pipeline_parallel=layout.pipeline,
        prompt_tokens=question.load.prompt_tokens,
    )  # fmt: skip
    fits, figures = planned(model, gpu, split)
    kv_tokens = int(value(figures, "kv_tokens"))
    held = question.load.users * (question.load.prompt_tokens + question.load.output_tokens)
    if not fits or kv_tokens < held:
        return ScaledLayout(str(layout), layout.gpus, kv_tokens)
    links_s = sum(figure.value for figure in figures if figure.name == "allreduce_prefill_s")
    return ScaledLayout(
        str(layout),
        layout.gpus,
        kv_tokens,
        value(figures, "prefill_floor_s") + links_s,
        1.0 / value(figures, "decode_floor_s"),
        value(figures, "load_output_tokens_s"),
    )
