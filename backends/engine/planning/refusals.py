"""Layouts that vLLM refuses for a model, independent of memory."""

from backends.engine.modelconfig import ModelConfig
from backends.engine.planning.question import ParallelLayout


def refusals(model: ModelConfig, layout: ParallelLayout) -> tuple[str, ...]:
    return (*_heads(model, layout.tensor), *_stages(model, layout.pipeline))


def _heads(model: ModelConfig, gpus: int) -> list[str]:
    """Return why attention or KV heads cannot be split over `gpus`, empty if they can.

    If there are fewer KV heads than GPUs, each KV head is stored on several GPUs.
    """
    if model.heads % gpus:
        return [f"vLLM refuses this: {model.heads} attention heads do not divide by {gpus} GPUs"]
    if max(gpus, model.kv_heads) % min(gpus, model.kv_heads):
        return [f"vLLM refuses this: {model.kv_heads} kv heads do not divide by {gpus} GPUs"]
    return []


def _stages(model: ModelConfig, stages: int) -> list[str]:
    if stages <= model.layers:
        return []
    return [f"{model.layers} layers cannot be {stages} stages: some would have none"]
