"""Checks of reported usage against the request, the received text and the hold.

A provider's figures are believed if they are possible, since its invoice will have them. They are
impossible in three cases. The text would need tokens longer than any vocabulary has or shorter than
a byte. Output exceeds the request's limit, or any context. A prompt of plain text has more tokens
than the request has bytes. What is possible but above the hold is claimed and not booked: no budget
pays more than its hold.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES
from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import PROMPT_KINDS

UNSEEN_TOKENS = 64  # per choice: marks of turns, calls and ends, which are no text
TEMPLATE_TOKENS = 2048  # that a target may add to a prompt
CONTEXT_TOKENS = 10_000_000  # above any model's (2026-11)
_NO_PROMPT = {kind.field: 0 for kind in PROMPT_KINDS}


class UsageBounds(NamedTuple):
    """The bounds of an attempt's hold, in tokens.

    `output` counts all choices; `told`: the target got that limit.
    """

    choices: int
    output: int
    told: bool
    prompt: int


def is_impossible(
    tokens: TokenCounts, bounds: UsageBounds, *, said_bytes: int, sent_bytes: int | None
) -> bool:
    """Return whether no target can have meant these figures, by its limits or its input.

    Some providers count thoughts outside the limit, so these are believed. `sent_bytes` is the size
    of a plain text prompt, None where a target may read more than it was sent.
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
    """Return whether the tokens are within the bounds."""
    return tokens.output <= bounds.output and tokens.prompt <= bounds.prompt


def fit_tokens(tokens: TokenCounts, bounds: UsageBounds) -> TokenCounts:
    """Return the tokens cut to the bounds."""
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
    """Return all tokens of the bounds."""
    return TokenCounts(input=bounds.prompt, output=bounds.output)


def fitting_tokens(
    tokens: TokenCounts, bounds: UsageBounds, searches_limit: int
) -> tuple[TokenCounts, ...]:
    """Return token counts within the bounds: cut in each kind, then all plain tokens."""
    fitted = fit_tokens(tokens, bounds)
    searches = min(fitted.searches, searches_limit)
    return fitted, msgspec.structs.replace(fitted, searches=searches), most_tokens(bounds)


def least_of(counted: TokenCounts, most: TokenCounts) -> TokenCounts:
    """Return the smaller count of each kind, for request kinds that count units."""
    pairs = zip(msgspec.structs.astuple(counted), msgspec.structs.astuple(most), strict=True)
    return TokenCounts(*(min(pair) for pair in pairs))


def is_too_low(tokens: TokenCounts, said_bytes: int) -> bool:
    """Return whether the text has more bytes than so many tokens can have."""
    return said_bytes > LONGEST_TOKEN_BYTES * tokens.output


def is_too_high(
    tokens: TokenCounts, usage: Mapping[str, Any], choices: int, said_bytes: int
) -> bool:
    """Return whether the text has fewer bytes than tokens; not used for answers with pictures."""
    visible = tokens.plain_output + tokens.image_output - _rejected_tokens(usage)
    return visible > said_bytes + UNSEEN_TOKENS * choices


def fit_text(tokens: TokenCounts, choices: int, said_bytes: int) -> TokenCounts:
    """Return the tokens with output cut to what the text can have, and without pictures.

    Thoughts and sound are kept, as they are no text.
    """
    visible = said_bytes + UNSEEN_TOKENS * choices
    output = visible + tokens.reasoning + tokens.audio_output
    return msgspec.structs.replace(tokens, output=output, image_output=0)


def count_thoughts(
    tokens: TokenCounts, usage: Mapping[str, Any], choices: int, said_bytes: int
) -> TokenCounts:
    """Return the tokens with output above the text counted as reasoning, as none was reported."""
    most = said_bytes + UNSEEN_TOKENS * choices + _rejected_tokens(usage)
    thought = max(0, tokens.plain_output - most)
    return msgspec.structs.replace(tokens, reasoning=tokens.reasoning + thought)


def is_worth_reading(tokens: TokenCounts, choices: int, answer_bytes: int) -> bool:
    """Return whether a whole answer must be parsed to judge it; mostly its size is enough.

    At least half of an honest answer's bytes are more than its tokens, and its frame has hundreds.
    """
    visible = tokens.plain_output + tokens.image_output - UNSEEN_TOKENS * choices
    return is_too_low(tokens, answer_bytes) or 2 * visible > answer_bytes


def _rejected_tokens(usage: Mapping[str, Any]) -> int:
    """Return the tokens of a prediction that the model rejected: billed but not in the text."""
    details = usage.get("completion_tokens_details")
    count = details.get("rejected_prediction_tokens") if isinstance(details, Mapping) else None
    return count if type(count) is int and count > 0 else 0
