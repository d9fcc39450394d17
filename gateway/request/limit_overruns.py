"""Output beyond the limit that a target was given, and the lesson from it.

Some targets bill thoughts outside the limit: their next answers get a larger hold. Text beyond the
limit shows that the target does not know the member in which the limit was sent.
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
    """Tokens of one choice beyond its limit; `is_text`: also without its thoughts."""

    tokens: int
    is_text: bool


def overrun_of(attempt: Attempt, tokens: TokenCounts) -> LimitOverrun | None:
    """Return the overrun of a believed answer; None where nothing is learned.

    A figure above any model's output is false, and would raise the holds of all requests.
    """
    request, frozen = attempt.plan.request, attempt.step.frozen
    if KINDS[request.kind].units is not None:
        return None
    told = most_output_of(attempt) // request.n - frozen.allowance_tokens
    return overrun_beyond(told, tokens, request.n)


def overrun_beyond(told: int, tokens: TokenCounts, choices: int) -> LimitOverrun | None:
    """Return the overrun of choices limited to `told` tokens each; None: nothing is learned."""
    beyond = -(-tokens.output // choices) - told
    if not 0 < beyond <= OVERRUN_LIMIT:
        return None
    said = -(-(tokens.output - tokens.reasoning) // choices)
    return LimitOverrun(beyond, said > told)


def names_newer_alone(asked: InferenceRequest) -> bool:
    """Return whether the client's limit has only OpenAI's newer name, which few others know."""
    return asked.translated is None and has_newer_alone(asked.members)


def has_newer_alone(members: Members) -> bool:
    """Return whether members give the limit by the newer name and not by the older one."""
    return _has(members, NEWER_LIMIT) and not _has(members, OLDER_LIMIT)


def _has(members: Members, name: str) -> bool:
    return name in members and bytes(members[name]) != b"null"
