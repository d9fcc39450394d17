"""Usage that was reported and cannot be: judged by what was asked, and by the text that came.

A provider's figures are believed as long as they can be true, for its invoice will say the same.
They cannot where the text that came would need tokens longer than any vocabulary has, or shorter
than a byte; where more was counted than the request's limit let be written; where a plain prompt
has more tokens than the whole request has bytes. Left open, and so believed: tokens reported as
thought or as sound, media, and what a target may fetch or add by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ledger.journals.records import TokenCounts
from ledger.journals.token_kinds import PROMPT_KINDS

LONGEST_TOKEN_BYTES = 128  # a row of blanks, in OpenAI's vocabularies
UNSEEN_TOKENS = 64  # of a choice: marks of turns, calls and ends, which are no text
TEMPLATE_TOKENS = 2048  # what a target may put around a prompt
_NO_TEXT = {kind.field: 0 for kind in PROMPT_KINDS if not kind.is_sound}
# With any other member (tools, searches, files) a target may read more than it was sent.
_PLAIN = frozenset((
    "cache_salt", "frequency_penalty", "ignore_eos", "input", "logprobs", "max_completion_tokens",
    "max_tokens", "messages", "min_tokens", "model", "n", "presence_penalty", "prompt",
    "reasoning_effort", "response_format", "seed", "stop", "stream", "stream_options",
    "temperature", "top_k", "top_logprobs", "top_p", "user",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class UsageBounds:
    """What an answer's usage cannot exceed.

    `output`: of all choices together, None where the target was told no limit; `prompt`: the bound
    that its hold was made of.
    """

    choices: int
    output: int | None
    prompt: int


def possible(tokens: TokenCounts, limits: UsageBounds, said_bytes: int) -> TokenCounts:
    """With no more output than was allowed, or than came in spite of it; itself if that holds."""
    most, thought = limits.output, tokens.reasoning  # which some providers count beside the limit
    if most is None or tokens.output - thought <= max(most, said_bytes):
        return tokens
    audio = min(tokens.audio_output, most)
    return msgspec.structs.replace(tokens, output=most + thought, audio_output=audio)


def prompt_possible(
    tokens: TokenCounts, limits: UsageBounds, members: Mapping[str, Any], *, media: bool
) -> TokenCounts:
    """With no more prompt than bytes were sent; `media` have tokens without bytes."""
    prompt = tokens.prompt
    if prompt <= limits.prompt or media or not _PLAIN.issuperset(members):
        return tokens
    sent = sum(len(bytes(value)) for value in members.values()) + TEMPLATE_TOKENS
    if prompt <= sent:
        return tokens
    return msgspec.structs.replace(tokens, **_NO_TEXT | {"input": limits.prompt})


def contradicted(
    tokens: TokenCounts,
    usage: Mapping[str, Any],
    choices: int,
    said_bytes: int,
    *,
    shown: bool = False,
) -> bool:
    """Whether the text that came cannot be this many tokens; `shown`: a picture came with it."""
    if said_bytes > LONGEST_TOKEN_BYTES * tokens.output:
        return True
    if shown:
        return False
    visible = tokens.plain_output - _rejected(usage)
    return visible > said_bytes + UNSEEN_TOKENS * choices


def worth_reading(tokens: TokenCounts, choices: int, answer_bytes: int) -> bool:
    """Whether an answer in one piece must be read to judge it: mostly its size says enough.

    Half of an honest answer's bytes are more than its tokens, and its frame is some hundreds.
    """
    visible = tokens.plain_output - UNSEEN_TOKENS * choices
    least = LONGEST_TOKEN_BYTES * (tokens.output + UNSEEN_TOKENS * choices)
    return answer_bytes > least or 2 * visible > answer_bytes


def _rejected(usage: Mapping[str, Any]) -> int:
    """Tokens of a prediction that the model did not take over: billed, and never said."""
    details = usage.get("completion_tokens_details")
    count = details.get("rejected_prediction_tokens") if isinstance(details, Mapping) else None
    return count if type(count) is int and count > 0 else 0
