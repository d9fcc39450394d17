"""Judges what an answer has beyond the limit that its target was told, and what that teaches.

Thoughts beside the limit are billed by some targets: their next answers are held for more. Text
beyond it shows that the target does not know the name by which it was told the limit.
"""

from typing import NamedTuple

from gateway.http.body import Members
from gateway.kinds import KINDS
from gateway.kinds.inference_request import NEWER_LIMIT, OLDER_LIMIT, InferenceRequest
from gateway.request.attempt import Attempt
from gateway.request.reported_usage import most_output_of
from ledger.journals.records import TokenCounts
from router.target_output import OVERRUN_LIMIT


class LimitOverrun(NamedTuple):
    """Tokens of one choice beyond its limit. `is_text`: there are also without its thoughts."""

    tokens: int
    is_text: bool


def overrun_of(attempt: Attempt, tokens: TokenCounts) -> LimitOverrun | None:
    """Return the overrun of an answer that was believed; None: nothing that teaches.

    More than any model makes is a false figure, and would raise the hold of everybody's requests.
    """
    request, frozen = attempt.plan.request, attempt.step.frozen
    if KINDS[request.kind].units is not None:
        return None
    told = most_output_of(attempt) // request.n - frozen.allowance_tokens
    return overrun_beyond(told, tokens, request.n)


def overrun_beyond(told: int, tokens: TokenCounts, choices: int) -> LimitOverrun | None:
    """Return the overrun of answers that were each told so many tokens; None: none that teaches."""
    beyond = -(-tokens.output // choices) - told
    if not 0 < beyond <= OVERRUN_LIMIT:
        return None
    said = -(-(tokens.output - tokens.reasoning) // choices)
    return LimitOverrun(beyond, said > told)


def names_newer_alone(asked: InferenceRequest) -> bool:
    """Whether a client's limit has OpenAI's newer name, which most other targets do not know."""
    return asked.translated is None and has_newer_alone(asked.members)


def has_newer_alone(members: Members) -> bool:
    """Return whether members tell their limit by the newer name and not by the older one."""
    return _has(members, NEWER_LIMIT) and not _has(members, OLDER_LIMIT)


def _has(members: Members, name: str) -> bool:
    return name in members and bytes(members[name]) != b"null"
