"""Usage that was reported, against what was asked, what came, and what was held for it.

A provider's figures are believed as long as they can be true, for its invoice will say the same.
They cannot where the text that came would need tokens longer than any vocabulary has, or shorter
than a byte; where more was counted than the request's limit let be written, or than any context
holds; where a prompt of text alone has more tokens than the whole request has bytes. What can be
true and was not held for is claimed and not booked: no budget pays more than its hold.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES
from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import PROMPT_KINDS

UNSEEN_TOKENS = 64  # of a choice: marks of turns, calls and ends, which are no text
TEMPLATE_TOKENS = 2048  # what a target may put around a prompt
CONTEXT_TOKENS = 10_000_000  # more than any model takes (2026-11)
_NO_PROMPT = {kind.field: 0 for kind in PROMPT_KINDS}


class UsageBounds(NamedTuple):
    """The bounds that an attempt was held for.

    `output`: tokens of all choices; `told`: whether the target was told that limit; `prompt`:
    tokens.
    """

    choices: int
    output: int
    told: bool
    prompt: int


def is_impossible(
    tokens: TokenCounts, bounds: UsageBounds, *, said_bytes: int, sent_bytes: int | None
) -> bool:
    """Whether no target can have meant these figures: by its limits, or by what it was sent.

    Thoughts are counted beside a request's limit by some providers, and so believed. `sent_bytes`:
    of a prompt that is text alone, None where a target may read more than that.
    """
    written = tokens.output - tokens.reasoning
    if bounds.told and written > max(bounds.output, said_bytes):
        return True
    if tokens.output > CONTEXT_TOKENS or tokens.prompt > CONTEXT_TOKENS:
        return True
    if sent_bytes is None:
        return False
    return tokens.prompt > max(bounds.prompt, sent_bytes + TEMPLATE_TOKENS)


def is_within(tokens: TokenCounts, bounds: UsageBounds) -> bool:
    """Whether so many tokens were held for."""
    return tokens.output <= bounds.output and tokens.prompt <= bounds.prompt


def fit_tokens(tokens: TokenCounts, bounds: UsageBounds) -> TokenCounts:
    """With no more of anything than was held for."""
    changes: dict[str, int] = {}
    if tokens.prompt > bounds.prompt:
        changes = {**_NO_PROMPT, "input": bounds.prompt}
    if tokens.output > bounds.output:
        audio = min(tokens.audio_output, bounds.output)
        image = min(tokens.image_output, bounds.output - audio)
        reasoning = min(tokens.reasoning, bounds.output - audio - image)
        changes |= {"output": bounds.output, "reasoning": reasoning}
        changes |= {"audio_output": audio, "image_output": image}
    return msgspec.structs.replace(tokens, **changes)


def most_tokens(bounds: UsageBounds) -> TokenCounts:
    """All that was held for."""
    return TokenCounts(input=bounds.prompt, output=bounds.output)


def fitting_tokens(
    tokens: TokenCounts, bounds: UsageBounds, searches_limit: int
) -> tuple[TokenCounts, ...]:
    """Return what of these was held for: with no more of anything, then all of the plain kinds."""
    fitted = fit_tokens(tokens, bounds)
    searches = min(fitted.searches, searches_limit)
    return fitted, msgspec.structs.replace(fitted, searches=searches), most_tokens(bounds)


def least_of(counted: TokenCounts, most: TokenCounts) -> TokenCounts:
    """Return, of each kind no more than `most` has, for kinds of request that count units."""
    pairs = zip(msgspec.structs.astuple(counted), msgspec.structs.astuple(most), strict=True)
    return TokenCounts(*(min(pair) for pair in pairs))


def is_too_low(tokens: TokenCounts, said_bytes: int) -> bool:
    """Whether the text that came has more bytes than so many tokens can have."""
    return said_bytes > LONGEST_TOKEN_BYTES * tokens.output


def is_too_high(
    tokens: TokenCounts, usage: Mapping[str, Any], choices: int, said_bytes: int
) -> bool:
    """Whether the text that came has fewer bytes than so many tokens; not asked of pictures."""
    visible = tokens.plain_output + tokens.image_output - _rejected_tokens(usage)
    return visible > said_bytes + UNSEEN_TOKENS * choices


def fit_text(tokens: TokenCounts, choices: int, said_bytes: int) -> TokenCounts:
    """With no more output than the text that came can have, and no picture: none came.

    Thoughts and sound are no text.
    """
    visible = said_bytes + UNSEEN_TOKENS * choices
    output = visible + tokens.reasoning + tokens.audio_output
    return msgspec.structs.replace(tokens, output=output, image_output=0)


def count_thoughts(
    tokens: TokenCounts, usage: Mapping[str, Any], choices: int, said_bytes: int
) -> TokenCounts:
    """With the output that the text that came cannot have as thoughts: nobody told how many."""
    most = said_bytes + UNSEEN_TOKENS * choices + _rejected_tokens(usage)
    thought = max(0, tokens.plain_output - most)
    return msgspec.structs.replace(tokens, reasoning=tokens.reasoning + thought)


def is_worth_reading(tokens: TokenCounts, choices: int, answer_bytes: int) -> bool:
    """Whether an answer in one piece must be read to judge it: mostly its size says enough.

    Half of an honest answer's bytes are more than its tokens, and its frame is some hundreds.
    """
    visible = tokens.plain_output + tokens.image_output - UNSEEN_TOKENS * choices
    return is_too_low(tokens, answer_bytes) or 2 * visible > answer_bytes


def _rejected_tokens(usage: Mapping[str, Any]) -> int:
    """Tokens of a prediction that the model did not take over: billed, and never said."""
    details = usage.get("completion_tokens_details")
    count = details.get("rejected_prediction_tokens") if isinstance(details, Mapping) else None
    return count if type(count) is int and count > 0 else 0
