"""Booked tokens of an attempt: as reported where possible, else estimated.

Usage that contradicts itself or the received text is `disputed`, and booked at the most that is
possible. Output above the text is no contradiction within the hold, if the model may have thought
unseen or no text came. Providers bill thoughts and withheld text, and many do not report how much.
Without usage an answer is estimated from its text plus unseen output (`hangups`). Where nothing
bounds that, the hold's bound is booked. The prompt of an unfinished answer is booked as the target
reported it.
"""

from math import ceil, inf
from typing import NamedTuple

from msgspec.structs import replace

from gateway.fleet.provider_caches import is_for_an_hour
from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.hangups import can_think, thought_tokens, unseen_output
from gateway.request.reported_usage import (
    Contradiction,
    UsageReading,
    bounds_of,
    find_contradiction,
    has_media,
    is_kept_back,
    most_output_of,
    read_usage,
    repeated_bytes,
    said_bytes_of,
    unnamed_bytes_of,
)
from gateway.request.usage_checks import count_thoughts, fit_text, fit_tokens
from ledger.journals.records import Basis, TokenCounts
from router.target_output import TargetOutput
from router.token_ratio import PRIOR_BYTES_PER_TOKEN, TokenRatio
from router.types import Feature

NO_TOKENS = TokenCounts()


class BookedUsage(NamedTuple):
    """The booked tokens; `claim` has the target's own figures where they are disputed.

    `plausible` is the part of the claim that can have been made, None where it equals `tokens`.
    `unseen`: the hold's bound is booked because the output is unknown. `is_prompt_told`: except the
    prompt, which the target reported.
    """

    tokens: TokenCounts
    basis: Basis
    disputed: bool
    claim: TokenCounts | None = None
    plausible: TokenCounts | None = None
    unseen: bool = False
    is_prompt_told: bool = False


def own_usage(attempt: Attempt, outcome: AttemptOutcome) -> BookedUsage:
    """Return the usage of an own engine; what it did not report is not charged.

    A report of no output for an answer that has text does not count as a report.
    """
    found, disputed = read_usage(attempt, outcome), bool(outcome.usage)
    if found is not None and (found.tokens.output or not _speaks(attempt, outcome)):
        if found.disputed:
            return BookedUsage(fit_tokens(found.tokens, bounds_of(attempt)), "bound", True)
        return BookedUsage(found.tokens, found.basis, False)
    unseen = outcome.status != "finished" and not attempt.events
    if unseen or not outcome.billable:
        return BookedUsage(NO_TOKENS, "estimated", disputed)
    prompt = attempt.plan.request.prompt_tokens
    tokens = TokenCounts(input=prompt, output=attempt.events)
    return BookedUsage(tokens, "estimated", disputed)


def api_usage(
    attempt: Attempt,
    outcome: AttemptOutcome,
    ratio: TokenRatio,
    known: TargetOutput,
    *,
    now_s: float,
) -> BookedUsage:
    """Return the usage of an API attempt; `ratio` gives the tokens of a text.

    `known` is what was learned of output that targets make and do not show.
    """
    found = read_usage(attempt, outcome, known)
    is_told = found is not None and outcome.usage_final
    unseen = unseen_output(attempt, outcome, known, now_s, is_told=is_told)
    if not unseen and found is not None and _is_whole(found.tokens.output, attempt, outcome):
        return _reported(found, attempt, outcome, ratio, known)
    # A running figure may be partial; a final or unreadable one is the target's claim.
    disputed = bool(outcome.usage) and (
        found is None
        or outcome.usage_final
        or find_contradiction(found, attempt, outcome) is not None
    )
    if not outcome.billable:
        return BookedUsage(NO_TOKENS, "estimated", disputed)
    if not outcome.is_whole and not attempt.plan.asked.stream:
        if outcome.is_told_failure:
            return BookedUsage(_untold_prompt(attempt), "estimated", disputed)
        unseen = unseen or inf
    if outcome.unreadable or has_media(attempt, outcome):
        unseen = inf
    return _estimated(found, attempt, outcome, ratio, unseen)._replace(disputed=disputed)


def _reported(
    found: UsageReading,
    attempt: Attempt,
    outcome: AttemptOutcome,
    ratio: TokenRatio,
    known: TargetOutput,
) -> BookedUsage:
    """Return the reported figures, cut to what is possible."""
    tokens, basis = found.tokens, found.basis
    claim = found.claim or tokens
    contradiction = find_contradiction(found, attempt, outcome)
    if contradiction is None:
        if not found.disputed:
            return BookedUsage(tokens, basis, False)
        fitted = fit_tokens(tokens, bounds_of(attempt))
        return BookedUsage(fitted, basis if fitted == tokens else "bound", True, claim, tokens)
    bounds, said = bounds_of(attempt), said_bytes_of(attempt, outcome)
    if contradiction is Contradiction.TOO_LOW:
        estimate = _text_tokens(attempt, outcome, ratio)
        within = replace(tokens, output=max(estimate, -(-said // LONGEST_TOKEN_BYTES)))
        plausible = within
    else:
        if is_kept_back(found, attempt, outcome, known):
            # An error replaced text that was generated and withheld.
            if outcome.error is None and can_think(attempt, known):
                tokens = count_thoughts(tokens, found.usage, bounds.choices, said)
            return BookedUsage(tokens, basis, False)
        within = fit_text(tokens, bounds.choices, said)
        plausible = fit_tokens(tokens, bounds)
    fitted = fit_tokens(within, bounds)
    basis = "estimated" if fitted == within else "bound"
    return BookedUsage(fitted, basis, True, claim, plausible)


def _estimated(
    found: UsageReading | None,
    attempt: Attempt,
    outcome: AttemptOutcome,
    ratio: TokenRatio,
    unseen: float,
) -> BookedUsage:
    """Return the received text with `unseen` more tokens; the prompt as reported, if it was."""
    output, most = _text_tokens(attempt, outcome, ratio), most_output_of(attempt)
    told = None
    if found is not None and not (found.disputed or outcome.usage_final):
        told = found.tokens
    if found is not None and (unseen or told is not None):
        output = max(output, found.tokens.output)
    is_bound = bool(unseen) and output + unseen >= most
    beyond = max(0, most - output) if is_bound else int(unseen)
    if is_bound and Feature.HOSTED_TOOLS in attempt.plan.request.features:
        told = None  # tool results are prompts, too
    thought = thought_tokens(attempt, beyond)
    prompt = told
    if prompt is None:
        prompt = TokenCounts(bounds_of(attempt).prompt) if is_bound else _untold_prompt(attempt)
    tokens = replace(prompt, output=output + beyond, reasoning=prompt.reasoning + thought)
    return BookedUsage(
        tokens,
        "bound" if is_bound else "estimated",
        False,
        unseen=is_bound,
        is_prompt_told=told is not None,
    )


def _untold_prompt(attempt: Attempt) -> TokenCounts:
    """Return the estimate of an unreported prompt, by the token kinds that it may cost as.

    Sound has a price of its own, and what a request marks may have been written to a cache.
    """
    request = attempt.plan.request
    heard = min(attempt.plan.asked.sound_tokens, request.prompt_tokens)
    read, kept_s = request.prompt_tokens - heard, request.beginning.kept_s
    if not kept_s:
        return TokenCounts(read, audio_input=heard)
    if is_for_an_hour(request.beginning):
        return TokenCounts(cache_write_1h=read, audio_input=heard)
    return TokenCounts(cache_write=read, audio_input=heard)


def _text_tokens(attempt: Attempt, outcome: AttemptOutcome, ratio: TokenRatio) -> int:
    """Return the tokens of the received text, at most the hold's.

    Each content event of a stream counts as at least one token.
    """
    most, seen = most_output_of(attempt), _content_events_of(attempt)
    said = max(said_bytes_of(attempt, outcome), unnamed_bytes_of(attempt, outcome))
    output = max(seen, min(most, int(outcome.is_whole)))
    if said:
        estimate = ratio.text_tokens(attempt.plan.learning_key, said)
        # A tenant's own prompts teach the ratio: they must not make its answers cheap.
        estimate = max(estimate, ceil(said / PRIOR_BYTES_PER_TOKEN))
        output = max(output, min(estimate, most))
    return output


def _is_whole(output: int, attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Return whether reported output covers all that came; a running figure may cover less."""
    if output == 0:
        unnamed = not outcome.usage_final and unnamed_bytes_of(attempt, outcome) > 0
        return not (unnamed or _speaks(attempt, outcome))
    if outcome.usage_final:
        return True
    return not outcome.usage_behind and output >= _content_events_of(attempt)


def _content_events_of(attempt: Attempt) -> int:
    """Return the content events of a stream, each at least one token; 0 without a stream."""
    return attempt.events if attempt.plan.asked.stream else 0


def _speaks(attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Return whether output was received; a prompt that is only scored is repeated as text."""
    said = said_bytes_of(attempt, outcome)
    if bytes(attempt.plan.asked.members.get("max_tokens", b"")) == b"0":
        return said > repeated_bytes(attempt)
    return bool(_content_events_of(attempt) or said)
