"""Prompt usage above the target's bound, and the lesson from it.

Usage has one number for a whole prompt, at some targets a second one for sound. The excess is
attributed to pictures and sounds, else to the context.
"""

from gateway.fleet.prompt_bound import TargetPrompt, most_read, picture_weight, prompt_bound
from gateway.kinds import KINDS
from gateway.request.attempt import Attempt
from ledger.journals.records import TokenCounts
from router.target_prompts import PromptOverrun
from router.token_ratio import TokenRatio
from router.types import Feature


def prompt_overrun_of(
    attempt: Attempt, tokens: TokenCounts, ratio: TokenRatio
) -> PromptOverrun | None:
    """Return the overrun of a believed answer; None where nothing is learned.

    It is measured against the bound before learning, so that a learned excess is seen again.
    """
    prompt = attempt.step.frozen.prompt
    if prompt is None:
        return None
    request, asked = attempt.plan.request, attempt.plan.asked
    if KINDS[request.kind].units is not None or _reads_elsewhere(attempt, tokens):
        return None
    billed = tokens.whole_prompt
    if billed <= prompt_bound(request, prompt):
        return None
    text, _ = ratio.estimate(attempt.plan.learning_key, asked.prompt_bytes - asked.picture_bytes)
    # Each text of a list may fill a context.
    is_one = most_read(request, 1) == 1
    context = billed if is_one and _fills_context(prompt, billed) else 0
    overrun = _parts_overrun(prompt, tokens, min(text, prompt.text))
    overrun = overrun._replace(context=context)
    return overrun if any(overrun) else None


def _parts_overrun(prompt: TargetPrompt, tokens: TokenCounts, text: int) -> PromptOverrun:
    """Return the factors by which pictures and sounds exceed their estimated tokens."""
    beside = tokens.whole_prompt - text
    weight, sounds = picture_weight(prompt), prompt.sounds
    if prompt.has_files or beside <= prompt.pictures + sounds:
        return PromptOverrun()
    if weight and sounds and not tokens.audio_input:
        factor = beside / (weight + sounds)
        return PromptOverrun(factor, factor)
    heard = tokens.audio_input if weight else beside
    seen = beside - heard
    return PromptOverrun(
        seen / weight if seen > prompt.pictures else 0.0,
        heard / sounds if 0 < sounds < heard else 0.0,
    )


def _fills_context(prompt: TargetPrompt, billed: int) -> bool:
    """Return whether the assumed context was too small, rather than the parts alone."""
    return prompt.has_files or (prompt.context > 0 and billed > prompt.context)


def _reads_elsewhere(attempt: Attempt, tokens: TokenCounts) -> bool:
    """Return whether the target may have read results of its own tools."""
    return bool(tokens.searches) or Feature.HOSTED_TOOLS in attempt.plan.request.features
