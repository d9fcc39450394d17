"""Speedup by a draft model at batch 1: tokens per read of the target model's weights.

If `k` tokens are drafted and each is accepted with probability `a`, one pass of the target model
yields `(1 - a^(k+1)) / (1 - a)` tokens (Leviathan et al., 2023, formula 1): 3.69 at 0.8 and 5.
A pass costs one step of the target model and `k` steps of the draft model. With many sequences,
reading weights no longer limits a step, and checking k + 1 tokens each costs what drafting gains.
Measured on one H200, 70B in FP8 with an EAGLE head: no gain above 32 to 64 sequences at once.
"""

import json

from backends.engine.catalog import GpuSpec
from backends.engine.modelconfig import ModelConfig
from backends.engine.planning.question import DraftModel, Figures, ParallelLayout, PlanFigure, value


def tokens_per_pass(draft: DraftModel) -> float:
    if draft.acceptance >= 1.0:
        return draft.drafted + 1.0
    return (1.0 - draft.acceptance ** (draft.drafted + 1)) / (1.0 - draft.acceptance)


def drafting(gpu: GpuSpec, draft: DraftModel, layout: ParallelLayout, figures: Figures) -> Figures:
    plain = value(figures, "decode_floor_s")
    model, count = draft.model, draft.drafted
    step = model.active_weight_bytes / (gpu.best_bandwidth_bytes_s * layout.tensor)
    tokens = tokens_per_pass(draft)
    each = (plain + count * step) / tokens
    return (
        PlanFigure(
            "draft_step_floor_s", step, "s",
            f"{model.active_weight_bytes:,} B of {model.name}'s weights"
            f" / ({layout.tensor} x {gpu.best_bandwidth_bytes_s / 1e12:g} TB/s)",
        ),
        PlanFigure(
            "tokens_a_pass", tokens, "tokens",
            f"(1 - {draft.acceptance:g}^{count + 1}) / (1 - {draft.acceptance:g})",
        ),
        PlanFigure(
            "drafted_token_floor_s", each, "s",
            f"(decode_floor_s + {count} x draft_step_floor_s) / tokens_a_pass, one sequence",
        ),
        PlanFigure("drafting_gain", plain / each, "x", "decode_floor_s / drafted_token_floor_s"),
    )  # fmt: skip


def refusals(model: ModelConfig, draft: DraftModel) -> tuple[str, ...]:
    if draft.model.vocabulary == model.vocabulary:
        return ()
    said = (
        f"vLLM refuses this draft: its vocabulary has {draft.model.vocabulary:,} tokens and"
        f" {model.name}'s {model.vocabulary:,}"
    )
    return (said,)


def warnings(model: ModelConfig, draft: DraftModel, figures: Figures) -> tuple[str, ...]:
    found = [*refusals(model, draft)]
    if value(figures, "drafting_gain") <= 1.0:
        found.append(
            f"drafting with {draft.model.name} costs more than it brings: draft fewer tokens, or"
            " take a smaller model"
        )
    return tuple(found)


def flags(draft: DraftModel) -> tuple[str, str]:
    said = {
        "method": "draft_model", "model": draft.place or draft.model.name,
        "num_speculative_tokens": draft.drafted,
    }  # fmt: skip
    return "--speculative-config", json.dumps(said, separators=(",", ":"))
