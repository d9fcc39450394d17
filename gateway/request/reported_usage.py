"""Usage that a target reported of an attempt, checked against the received text."""

import dataclasses
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from msgspec.structs import replace

from backends.answer_media import has_pictures, has_sound
from backends.chunk_choices import unnamed_words
from backends.messages_usage import CONTRADICTING
from backends.text_length import answer_content_bytes, answer_said_bytes, decode_answer
from gateway.fleet.attempt_bounds import output_bound
from gateway.kinds import KINDS
from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES
from gateway.kinds.least_prompt import least_prompt_tokens
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.prompt_parts import is_continued
from gateway.request.attempt import Attempt
from gateway.request.hangups import can_think
from gateway.request.usage_checks import (
    UsageBounds,
    is_impossible,
    is_too_high,
    is_within,
    is_worth_reading,
)
from ledger.journals.records import Basis, TokenCounts
from ledger.journals.token_kinds import TOKENS_LIMIT
from ledger.merged_counts import merge_counts, takes_back
from ledger.usage import other_reading
from ledger.usage_figures import UsageContradiction, UsageError
from router.target_output import TargetOutput
from router.types import Feature, RoutingRequest

# For these a target reads more than their bytes in the request.
_READ_ELSEWHERE = frozenset((Feature.IMAGES, Feature.MEDIA_URLS, Feature.HOSTED_TOOLS))
# Longer than tokens of ordinary text: among figures that do not grow with the answer, a lower
# one is of its chunk only.
USUAL_TOKEN_BYTES = 16


class UsageReading(NamedTuple):
    """A target's figures; `disputed`: no target can have meant them.

    `contradicts`: they only contradict each other, and these are the largest of them. `claim` adds
    reported figures that are impossible, as a bill may have them; None where there are none.
    """

    tokens: TokenCounts
    basis: Basis
    disputed: bool
    usage: Mapping[str, Any]
    contradicts: bool = False
    claim: TokenCounts | None = None


class Contradiction(Enum):
    """The direction in which the received text contradicts a figure of output."""

    TOO_LOW = auto()
    TOO_HIGH = auto()


def read_usage(
    attempt: Attempt, outcome: AttemptOutcome, known: TargetOutput | None = None
) -> UsageReading | None:
    """Return what the target reported; None if nothing readable was reported.

    Figures of a stream grow, so the largest of each count is used, except those that the text shows
    to be too high. A later figure that takes back an earlier one is disputed, and so is one that
    its own list contradicts. `known` has what APIs make and do not show.
    """
    best = _best_reading(attempt, outcome, known)
    told = (outcome.usage or {}, *outcome.earlier_usage)
    if best is not None and any(usage.get(CONTRADICTING) for usage in told):
        return best._replace(disputed=True)
    return best


def _best_reading(
    attempt: Attempt, outcome: AttemptOutcome, known: TargetOutput | None
) -> UsageReading | None:
    last = _reading(attempt, outcome, outcome.usage)
    if not outcome.earlier_usage:
        return last
    earlier = [_reading(attempt, outcome, usage) for usage in outcome.earlier_usage]
    told = [reading for reading in (*earlier, last) if reading is not None]
    # A figure that is too low is of the beginning, but its prompt is valid.
    possible = [
        reading for reading in told if not _is_beyond_text(reading, attempt, outcome, known)
    ]
    merged = [
        reading for reading in possible if reading.contradicts or not reading.disputed
    ] or possible
    if not merged:
        return last
    most = merge_counts([reading.tokens for reading in merged])
    withdrawn = len(possible) < len(told) and last in possible
    disputed = last is None or withdrawn or takes_back(last.tokens, most)
    base: UsageReading = max(reversed(merged), key=lambda reading: reading.tokens.output)
    disputed = disputed or base.disputed or any(reading.contradicts for reading in merged)
    claim = None
    impossible = [reading.tokens for reading in told if _is_claimed(reading, merged)]
    if disputed and impossible:
        claim = merge_counts([*impossible, most])
    return UsageReading(most, base.basis, disputed, base.usage, claim=claim)


def _is_claimed(reading: UsageReading, merged: list[UsageReading]) -> bool:
    """Return whether a reading is the target's own, no estimate, and is not booked."""
    return reading not in merged and reading.basis != "estimated"


def _is_beyond_text(
    reading: UsageReading, attempt: Attempt, outcome: AttemptOutcome, known: TargetOutput | None
) -> bool:
    """Return whether a reading counts more output than can have been made."""
    if find_contradiction(reading, attempt, outcome) is not Contradiction.TOO_HIGH:
        return False
    return known is None or not is_kept_back(reading, attempt, outcome, known)


def is_kept_back(
    found: UsageReading, attempt: Attempt, outcome: AttemptOutcome, known: TargetOutput
) -> bool:
    """Return whether output above the text may have been made, within the hold.

    It may be thoughts, or an answer that was withheld as a whole, for example by a filter.
    """
    if found.disputed or not is_within(found.tokens, bounds_of(attempt)):
        return False
    return not said_bytes_of(attempt, outcome) or can_think(attempt, known)


def _reading(
    attempt: Attempt, outcome: AttemptOutcome, usage: Mapping[str, Any] | None
) -> UsageReading | None:
    if usage is None:
        return None
    try:
        tokens = KINDS[attempt.plan.request.kind].usage(usage)
    except UsageContradiction as error:
        reading = _judged(error.most, attempt, outcome, usage)
        return reading._replace(disputed=True, contradicts=not reading.disputed)
    except UsageError:
        return None  # implausible usage is not booked: `basis` and the flag show it
    reading = _judged(tokens, attempt, outcome, usage)
    if reading.disputed and (other := other_reading(usage)) is not None:
        second = _judged(other, attempt, outcome, usage)
        return reading if second.disputed else second
    return reading


def _judged(
    tokens: TokenCounts, attempt: Attempt, outcome: AttemptOutcome, usage: Mapping[str, Any]
) -> UsageReading:
    """Return the figures checked against what was sent and what was held."""
    if tokens.audio_output and not _has_sound(attempt, outcome):
        tokens = replace(tokens, audio_output=0)  # not requested, and none came
    bounds, asked = bounds_of(attempt), attempt.plan.asked
    basis: Basis = "reported" if outcome.usage_final else "continuous"
    prompt = tokens.prompt
    # The exact check is rare: most prompts have many more tokens, with everything around them.
    too_low = asked.prompt_bytes > LONGEST_TOKEN_BYTES * prompt and not attempt.own
    least = least_prompt_tokens(asked.members, context_of(attempt), prompt + 1) if too_low else 0
    if prompt < least:
        estimate = max(attempt.plan.request.prompt_tokens, least)
        tokens = replace(tokens, input=tokens.input + estimate - prompt)
        return UsageReading(tokens, "estimated", True, usage)
    if is_within(tokens, bounds):
        return UsageReading(tokens, basis, False, usage)
    said = most_said_bytes_of(attempt, outcome)
    sent = None
    if not reads_elsewhere(attempt, tokens):
        sent = sum(len(bytes(value)) for value in asked.members.values())
    disputed = is_impossible(tokens, bounds, said_bytes=said, sent_bytes=sent)
    return UsageReading(tokens, basis, disputed, usage)


def reads_elsewhere(attempt: Attempt, tokens: TokenCounts) -> bool:
    """Return whether a target may have read more than it was sent, such as search results."""
    return bool(tokens.searches or _READ_ELSEWHERE & attempt.plan.asked.features)


def context_of(attempt: Attempt) -> int | None:
    """Return the stated context of the attempt's model in tokens, None without any."""
    limits = attempt.step.frozen.limits
    return None if limits is None else limits.stated_context or None


def find_contradiction(
    found: UsageReading, attempt: Attempt, outcome: AttemptOutcome
) -> Contradiction | None:
    """Return how the text contradicts the figures, where these cover all of the text.

    A figure in the last text event covers it, too. A figure may lag behind the text of an answer
    that the gateway gave up, and may count withheld output of one that broke off.
    """
    choices = attempt.plan.request.n
    lags = not outcome.usage_final and (outcome.usage_behind or outcome.is_given_up)
    if lags or found.tokens.output == 0:
        return None
    said, most = outcome.said_bytes, max(outcome.said_bytes, outcome.most_said_bytes)
    shown = outcome.shown
    if outcome.answer is not None:
        if not is_worth_reading(found.tokens, choices, len(outcome.answer)):
            return None
        (said, most), shown = answer_said_bytes(outcome.answer), has_pictures(outcome.answer)
    longest = USUAL_TOKEN_BYTES if outcome.usage_stands else LONGEST_TOKEN_BYTES
    most_bytes = longest * found.tokens.output
    if said > most_bytes and said - repeated_bytes(attempt) > most_bytes:
        return Contradiction.TOO_LOW
    # Without a prediction in the request, none can have been rejected.
    usage = found.usage if "prediction" in attempt.plan.asked.members else {}
    is_of_all = outcome.usage_final or outcome.is_whole
    if is_of_all and not shown and is_too_high(found.tokens, usage, choices, most):
        return Contradiction.TOO_HIGH
    return None


def repeated_bytes(attempt: Attempt) -> int:
    """Return the bytes of an answer that may repeat the prompt, and need no generation."""
    asked = attempt.plan.asked
    echoes = "echo" in asked.members and bytes(asked.members["echo"]) == b"true"
    goes_on = "messages" in asked.members and is_continued(bytes(asked.members["messages"]))
    return asked.n * asked.prompt_bytes if echoes or goes_on else 0


def bounds_of(attempt: Attempt) -> UsageBounds:
    """Return the bounds of the attempt's hold."""
    request, frozen = attempt.plan.request, attempt.step.frozen
    told = request.max_tokens is not None or frozen.candidate.output_cap is not None
    prompt = frozen.prompt_bound(request)
    return UsageBounds(request.n, most_output_of(attempt), told, prompt)


def bounded_request(attempt: Attempt) -> RoutingRequest:
    """Return the request with the prompt bound of the attempt's hold."""
    request, frozen = attempt.plan.request, attempt.step.frozen
    bound = frozen.prompt_bound(request)
    if bound == request.prompt_tokens_bound:
        return request
    return dataclasses.replace(request, prompt_tokens_bound=bound)


def most_output_of(attempt: Attempt) -> int:
    """Return the output tokens in the bound of the attempt's hold."""
    request, frozen = attempt.plan.request, attempt.step.frozen
    cap = frozen.candidate.output_cap
    if cap is None:
        cap = output_bound(request) if frozen.open_end is None else frozen.open_end.limit_tokens
    return min((cap + frozen.allowance_tokens) * request.n, TOKENS_LIMIT)


def said_bytes_of(attempt: Attempt, outcome: AttemptOutcome) -> int:
    if outcome.answer is None:
        return outcome.said_bytes
    if not KINDS[attempt.plan.request.kind].answer_has_text:
        return 0
    return answer_content_bytes(outcome.answer)


def most_said_bytes_of(attempt: Attempt, outcome: AttemptOutcome) -> int:
    """Return the bytes of everything received that may be text."""
    if outcome.answer is None:
        return max(outcome.said_bytes, outcome.most_said_bytes)
    if not KINDS[attempt.plan.request.kind].answer_has_text:
        return 0
    return answer_said_bytes(outcome.answer).most


def unnamed_bytes_of(attempt: Attempt, outcome: AttemptOutcome) -> int:
    """Return the bytes of text received in members that the gateway does not know.

    For a whole answer without any known text, all that may be text counts.
    """
    if outcome.answer is None:
        return outcome.unnamed_bytes
    if not said_bytes_of(attempt, outcome):
        return most_said_bytes_of(attempt, outcome)
    return unnamed_words(decode_answer(outcome.answer) or {}).words


def has_media(attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Return whether sound or pictures came, whose tokens only the target can count."""
    if outcome.spoken or outcome.shown:
        return True
    if outcome.answer is None or not KINDS[attempt.plan.request.kind].answer_has_text:
        return False
    return has_sound(outcome.answer) or has_pictures(outcome.answer)


def _has_sound(attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Return whether sound was requested or received."""
    if attempt.plan.request.has_sound or outcome.spoken:
        return True
    return outcome.answer is not None and has_sound(outcome.answer)
