"""Memory of a GPU for weights and activations, and the remainder for the KV cache.

A GPU holds its part of the weights (`1 / (tensor x pipeline)`), the activations of the widest
layer and its part of a draft model, if there is one. The KV cache is split in the same way. KV
heads are never split: if there are more tensor-parallel GPUs than KV heads, heads are copied.
"""

from backends.engine.catalog import GpuSpec
from backends.engine.modelconfig import ModelConfig
from backends.engine.planning.question import Figures, ParallelLayout, PlanFigure, PlanRequest

# Memory that vLLM uses besides weights and activations: two measurements (70B shape in AWQ and
# FP8, one H200, 2026-11-20) leave 0.3 GB after the activations below.
_RUNTIME_BYTES = 300_000_000
SEQUENCES = 256  # the default of --max-num-seqs, for which logits are allocated
_LOGIT_BYTES = 10  # the model's format, a float32 copy, and its sorted or softmax copy


def memory(
    model: ModelConfig, gpu: GpuSpec, question: PlanRequest, layout: ParallelLayout
) -> Figures:
    per_token, how = _kv_bytes(model, question)
    copies = max(1, layout.tensor // model.kv_heads)
    batched = question.batched_tokens or (8192 if gpu.memory_gib >= 70 else 2048)
    activation = _activation_bytes(model, batched, layout.tensor)
    share, gpus = question.gpu_memory_utilization, layout.gpus
    drafts = () if question.draft is None else _draft(question.draft.model)
    kept = model.weight_bytes + sum(figure.value for figure in drafts)
    room = gpu.visible_bytes * share - kept / gpus - activation - _RUNTIME_BYTES
    tokens = max(0, int(room * gpus / (per_token * copies)))
    weights = "" if not drafts else f" - {drafts[0].value:,.0f} / {gpus} of the draft"
    return (
        PlanFigure("parameters", model.parameters, "", "from the shapes in config.json"),
        *_active(model),
        PlanFigure("weight_bytes", model.weight_bytes, "B", _weights(model)),
        *drafts,
        PlanFigure("kv_bytes_per_token", per_token, "B", how),
        PlanFigure(
            "activation_bytes", activation, "B",
            f"{batched:,} tokens x (3 x {model.hidden:,} + 3 x {model.intermediate:,} /"
            f" {layout.tensor}) x {model.dtype_bytes} B + {SEQUENCES} logit rows x"
            f" {model.vocabulary:,} x {_LOGIT_BYTES} B",
        ),
        PlanFigure(
            "kv_tokens", tokens, "tokens",
            f"{gpus} x ({gpu.visible_bytes:,} B x {share:g} - {model.weight_bytes:,} / {gpus}"
            f"{weights} - {activation:,} - {_RUNTIME_BYTES:,} runtime)"
            f" / ({per_token:,} B x {copies})",
        ),
    )  # fmt: skip


def _active(model: ModelConfig) -> Figures:
    if model.active_parameters == model.parameters:
        return ()
    how = (
        "attention, shared and routed experts of one token: what is multiplied, and at batch 1 read"
    )
    return (PlanFigure("active_parameters", model.active_parameters, "", how),)


def _weights(model: ModelConfig) -> str:
    if model.stored_bytes:
        return "sum of the tensors of its safetensors files"
    weights = model.weights
    return (
        f"{model.linear_parameters:,} linear x {weights.bits:g} bits ({weights.method}) / 8"
        f" + {model.table_parameters:,} embedding and output x {model.dtype_bytes} B"
    )


def _kv_bytes(model: ModelConfig, question: PlanRequest) -> tuple[int, str]:
    element = 1 if question.kv_dtype == "fp8" else model.dtype_bytes
    own = model.kv_bytes_per_token(element_bytes=element)
    how = (
        f"2 (K and V) x {model.layers} layers x {model.kv_heads} kv heads"
        f" x {model.head_dim} head_dim x {element} B"
    )
    if question.draft is None:
        return own, how
    beside = question.draft.model.kv_bytes_per_token(element_bytes=element)
    return own + beside, f"{how} + {beside:,} B of the draft model's, by the same formula"


def _draft(draft: ModelConfig) -> Figures:
    return (
        PlanFigure(
            "draft_weight_bytes", draft.weight_bytes, "B", f"{draft.name}: {_weights(draft)}"
        ),
    )


def _activation_bytes(model: ModelConfig, batched: int, tensor: int) -> int:
    """Return the peak bytes of one layer's activations and of the logits.

    A layer holds hidden, residual and normed values, gate and up values, and their product.
    """
    layer = batched * (3 * model.hidden + 3 * model.intermediate / tensor) * model.dtype_bytes
    return int(layer) + SEQUENCES * model.vocabulary * _LOGIT_BYTES
