"""Bounds what a target may have made of an attempt that we gave up, beyond what it said.

Decided by the provider's term `on_disconnect`. A provider that goes on, or may, can make all that
the hold covers. One that stops can have thought unseen until then, if its model thinks: at most as
fast as it was ever seen to make tokens, with a margin, for the time that passed.
A target that is silent until we give it up has failed, unless its model thinks in silence.
"""

import math
from typing import NamedTuple

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from ledger.prices.book import Price
from ledger.prices.rates import is_unlisted
from router.target_output import TargetOutput
from router.types import Feature

MARGIN = 2.0  # the rates that are seen include the prompt's time, and networks
NOTHING = 0.0
# OpenAI's, OpenRouter's and Anthropic's member, which others took over.
ASKS_TO_THINK = frozenset({"reasoning_effort", "reasoning", "thinking"})


class UnseenTerms(NamedTuple):
    """All that the amount depends on. `tokens_per_s`: the target's known rate, if there is one."""

    stops: bool
    streamed: bool
    thinks: bool
    tokens_per_s: float | None
    elapsed_s: float


def unseen_tokens(terms: UnseenTerms) -> float:
    """Return how many tokens may have been made unseen; infinite: as many as the hold covers."""
    if not terms.stops:
        return math.inf
    if terms.streamed and not terms.thinks:
        return NOTHING
    if terms.tokens_per_s is None:
        return math.inf
    return max(1.0, math.ceil(MARGIN * terms.tokens_per_s * terms.elapsed_s))


def unseen_output(
    attempt: Attempt, outcome: AttemptOutcome, known: TargetOutput, now_s: float
) -> float:
    """Return the output tokens that may have been made and not told, at most the hold's."""
    if outcome.usage_final or not (outcome.is_given_up or outcome.is_silent):
        return NOTHING
    thinks, streamed = can_think(attempt, known), attempt.plan.asked.stream
    if outcome.is_silent and streamed and not thinks:
        return NOTHING
    target = attempt.step.frozen.target
    return unseen_tokens(
        UnseenTerms(
            stops=not target.goes_on,
            streamed=streamed,
            thinks=thinks,
            tokens_per_s=known.tokens_per_s(target.name),
            elapsed_s=now_s - attempt.dispatched_s,
        )
    )


def can_think(attempt: Attempt, known: TargetOutput) -> bool:
    """Whether the model may think unseen: asked to, priced for it, or it was seen to.

    A provider whose `features` lack `reasoning` has no model that thinks.
    """
    frozen = attempt.step.frozen
    if Feature.REASONING not in frozen.target.features:
        return False
    asked = not ASKS_TO_THINK.isdisjoint(attempt.plan.asked.members)
    return asked or lists_reasoning(frozen.price) or known.hides(frozen.target.name)


def lists_reasoning(price: Price | None) -> bool:
    """Whether the price has a rate of its own for reasoning."""
    return price is not None and not is_unlisted(price.terms.rates, "reasoning")


def thought_tokens(attempt: Attempt, unseen: int) -> int:
    """Return how much of unseen output is booked as thoughts: all of it where these cost more."""
    price = attempt.step.frozen.price
    if price is None:
        return 0
    rates = [price.terms.rates, *(schedule.rates for schedule in price.terms.schedules)]
    return unseen if any(rate.reasoning > rate.output for rate in rates) else 0
