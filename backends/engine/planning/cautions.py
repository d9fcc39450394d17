"""Warnings of a plan: costly layouts and links, and combinations that vLLM refuses."""

from collections.abc import Sequence
from dataclasses import replace

from backends.engine.catalog import GpuSpec
from backends.engine.modelconfig import ModelConfig
from backends.engine.planning.question import Figures, ParallelLayout, PlanRequest, value
from backends.engine.planning.refusals import refusals

_SAVES_MEMORY = "such weights save memory, not time"


def weakest_gpu(gpus: Sequence[GpuSpec]) -> GpuSpec:
    """Return one GPU with the lowest bandwidth, memory, FLOP/s and link of `gpus`.

    The slowest GPU sets the time of every step, the smallest GPU the size of every shard.
    """
    first = gpus[0]
    if all(gpu.name == first.name for gpu in gpus):
        return first
    numbers = [number for number in first.flops if all(number in gpu.flops for gpu in gpus)]
    slowest = min(gpus, key=lambda gpu: gpu.best_bandwidth_bytes_s)
    link = min(gpus, key=lambda gpu: gpu.interconnect_bytes_s)
    smallest = min(gpus, key=lambda gpu: gpu.visible_bytes)
    return replace(
        smallest,
        name=" + ".join(dict.fromkeys(gpu.name for gpu in gpus)),
        bandwidth_bytes_s=slowest.bandwidth_bytes_s,
        measured_bandwidth_bytes_s=slowest.measured_bandwidth_bytes_s,
        flops={number: min(gpu.best_flops(number) or 0.0 for gpu in gpus) for number in numbers},
        measured_flops={},
        flops_note="the slower one's",
        interconnect=link.interconnect,
        interconnect_bytes_s=link.interconnect_bytes_s,
        nvlink=all(gpu.nvlink for gpu in gpus),
        source=f"of {slowest.name}: {slowest.source}",
        price=None,
    )


def mixed_gpus_note(gpus: Sequence[GpuSpec]) -> tuple[str, ...]:
    names = list(dict.fromkeys(gpu.name for gpu in gpus))
    if len(names) < 2:
        return ()
    least = weakest_gpu(gpus)
    said = (
        f"mixed GPUs ({', '.join(names)}): each step waits for the slowest, so all of them count as"
        f" {least.best_bandwidth_bytes_s / 1e12:g} TB/s and {least.memory_gib} GiB; a pool of each"
        " kind, which the gateway routes between, wastes nothing"
    )
    return (said,)


def cautions(
    model: ModelConfig,
    gpu: GpuSpec,
    layout: ParallelLayout,
    question: PlanRequest,
    figures: Figures,
) -> tuple[str, ...]:
    return (
        *_parallel(model, gpu, layout, question, figures),
        *_formats(model, gpu),
        *refusals(model, layout),
        *_copies(model, layout),
        *_context_note(model, question),
        *_roles_note(question, figures),
        *_late(question, figures),
        *_cache_note(gpu, question, figures),
    )


def _parallel(
    model: ModelConfig,
    gpu: GpuSpec,
    layout: ParallelLayout,
    question: PlanRequest,
    figures: Figures,
) -> list[str]:
    found = []
    if layout.tensor > 1 and not gpu.nvlink:
        links_s = value(figures, "allreduce_prefill_s")
        found.append(
            f"{gpu.name} is joined by {gpu.interconnect} only ({gpu.interconnect_bytes_s / 1e9:g}"
            f" GB/s): tensor parallelism spends {1e3 * links_s:.0f} ms of a prompt of"
            f" {question.prompt_tokens} tokens in all-reduces beside"
            f" {1e3 * value(figures, 'prefill_floor_s'):.0f} ms of products; with"
            f" --gpus 1 --pipeline-parallel {layout.tensor} the links carry next to nothing, and"
            " one request is no faster than on one GPU"
        )
    if layout.tensor > question.gpus_per_host:
        within = question.gpus_per_host
        found.append(
            f"tensor parallelism over {layout.tensor} GPUs crosses hosts of {within}: each layer's"
            f" all-reduces go over the network; split layers within a host and stages between"
            f" hosts: --gpus {within} --pipeline-parallel {-(-layout.gpus // within)}"
        )
    if layout.pipeline <= model.layers and model.layers % layout.pipeline:
        found.append(
            f"{model.layers} layers do not divide by {layout.pipeline} stages: the longest stage"
            " sets the pace of all"
        )
    return found


def _formats(model: ModelConfig, gpu: GpuSpec) -> list[str]:
    compute = model.weights.compute
    if compute in gpu.flops:
        return []
    how = "start vLLM with --dtype half" if compute == "bf16" else _SAVES_MEMORY
    return [f"{gpu.name} has no {compute} units: {how}"]


def _copies(model: ModelConfig, layout: ParallelLayout) -> list[str]:
    heads, gpus = model.kv_heads, layout.tensor
    if gpus > heads and not refusals(model, layout):
        return [f"{gpus} GPUs share {heads} kv heads: KV is stored more than once"]
    return []


def _context_note(model: ModelConfig, question: PlanRequest) -> list[str]:
    asked, has = question.context_tokens or 0, model.context_tokens
    if not has or asked <= has:
        return []
    words = f"a context of {asked:,} tokens is more than the {has:,} that the model was made for"
    return [f"{words}: vLLM refuses it, unless the model's rope_scaling says that it may be longer"]


def _roles_note(question: PlanRequest, figures: Figures) -> list[str]:
    """Return a note if full prefill steps exceed the TPOT limit; separate engines may keep it."""
    if not _late(question, figures):
        return []
    words = "engines that read prompts for others (`pools.NAME.roles`) may keep it"
    return [f"{words}: `engine plan --tpot-ms --ttft-ms` compares both"]


def _late(question: PlanRequest, figures: Figures) -> list[str]:
    if all(figure.value for figure in figures if figure.name == "prefill_budget_tokens"):
        return []
    words = f"{question.tpot_ms:g} ms a token is not kept beside a cache that is half full"
    return [f"{words}: promise more, or take more or faster GPUs"]


def _cache_note(gpu: GpuSpec, question: PlanRequest, figures: Figures) -> list[str]:
    """Return a note if the load exceeds the KV cache, so that vLLM would queue or preempt."""
    load = question.load
    if load is None or not any(figure.name == "concurrency" for figure in figures):
        return []
    each = load.prompt_tokens + load.output_tokens
    held = int(value(figures, "kv_tokens")) // each
    if held >= load.users:
        return []
    words = f"the KV cache holds {held} of {load.users} users at {each:,} tokens each"
    if question.kv_dtype == "auto" and "fp8" in gpu.flops:
        return [f"{words}: --kv-dtype fp8 holds {2 * held} (`engine eval` says what it costs)"]
    return [f"{words}: the rest waits; take more or larger GPUs"]
