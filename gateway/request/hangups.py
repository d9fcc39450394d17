"""Bounds what a target may have made of an attempt beyond what it told of, where nobody saw it.

Of an attempt that we gave up it is decided by the provider's term `on_disconnect`. A provider that
goes on, or may, can make all that the hold covers. One that stops can have thought unseen until
then, if its model thinks, or kept back a call of a tool or JSON, which some send in one piece: at
most as fast as it was ever seen to make tokens, with a margin, for the time that passed.
What a target searches, and reads of what it finds, is told by its last usage alone: an answer that
may search is read to its end wherever it is left, and without that usage all of the hold is made.
A target that is silent until we give it up has failed, unless its model works in silence, or its
provider says that it goes on then. So may have done a model whose stream broke off. Of an answer
that is whole nothing is kept back but thoughts, where its usage does not tell.
"""

import math
from typing import NamedTuple

from backends.disconnects import CONTINUES
from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.thinking import asks_to_think
from gateway.request.attempt import Attempt
from ledger.prices.book import Price
from ledger.prices.rates import is_unlisted
from router.target_output import RATE_LIMIT_PER_S, TargetOutput
from router.types import Feature

MARGIN = 2.0  # the rates that are seen include the prompt's time, and networks
NOTHING = 0.0
_TOOLS = frozenset(("tools", "functions"))


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
    attempt: Attempt,
    outcome: AttemptOutcome,
    known: TargetOutput,
    now_s: float,
    *,
    is_told: bool | None = None,
) -> float:
    """Return the output tokens that may have been made and not told, at most the hold's.

    `is_told`: whether the target's last figures can be read; None: whether there are any.
    """
    if outcome.usage_final if is_told is None else is_told:
        return NOTHING
    if not (outcome.is_given_up or outcome.is_silent):
        return _untold_output(attempt, outcome, known, now_s)
    streamed, goes_on = attempt.plan.asked.stream, attempt.goes_on
    failed = outcome.is_silent and streamed and not _is_known_to_go_on(attempt)
    if attempt.searches or (goes_on and not failed):
        return math.inf
    if not streamed or can_think(attempt, known):
        return _of_thinker(attempt, known, now_s, stops=not goes_on)
    if not can_keep_back(attempt):
        return NOTHING
    return math.inf if goes_on else _kept_back(attempt, known, now_s)


def _untold_output(
    attempt: Attempt, outcome: AttemptOutcome, known: TargetOutput, now_s: float
) -> float:
    """Return the unreported output of a finished or broken answer."""
    if attempt.searches and outcome.billable and not outcome.is_told_failure:
        return math.inf  # what it searched, and read of that
    if outcome.is_whole:  # it is at its end: nothing goes on
        thinks = can_think(attempt, known)
        return _of_thinker(attempt, known, now_s, stops=True) if thinks else NOTHING
    failed = not outcome.billable or outcome.is_told_failure
    if failed or not attempt.plan.asked.stream:
        return NOTHING
    if can_think(attempt, known):
        return _of_thinker(attempt, known, now_s, stops=not attempt.goes_on)
    return _kept_back(attempt, known, now_s) if can_keep_back(attempt) else NOTHING


def _of_thinker(attempt: Attempt, known: TargetOutput, now_s: float, *, stops: bool) -> float:
    """Thoughts since the dispatch; of an answer in one piece that is given up, all of it."""
    return unseen_tokens(
        UnseenTerms(
            stops=stops,
            streamed=attempt.plan.asked.stream,
            thinks=True,
            tokens_per_s=known.tokens_per_s(attempt.step.frozen.target.name),
            elapsed_s=now_s - attempt.dispatched_s,
        )
    )


def _kept_back(attempt: Attempt, known: TargetOutput, now_s: float) -> float:
    """Return the tokens that a target may have kept back since it was heard last."""
    rate = known.tokens_per_s(attempt.step.frozen.target.name)
    since_s = attempt.last_token_s or attempt.dispatched_s
    return unseen_tokens(
        UnseenTerms(
            stops=True,
            streamed=True,
            thinks=True,
            tokens_per_s=RATE_LIMIT_PER_S if rate is None else rate,
            elapsed_s=now_s - since_s,
        )
    )


def _is_known_to_go_on(attempt: Attempt) -> bool:
    """Whether its provider says so: what it begins after we gave it up is billed, too."""
    return attempt.step.frozen.target.on_disconnect == CONTINUES


def can_think(attempt: Attempt, known: TargetOutput) -> bool:
    """Whether the model may think unseen: asked to, priced for it, or it was seen to.

    What another team alone saw moves nothing.
    A provider whose `features` lack `reasoning` has no model that thinks.
    """
    frozen = attempt.step.frozen
    if Feature.REASONING not in frozen.target.features:
        return False
    if asks_to_think(attempt.plan.asked.members) or lists_reasoning(frozen.price):
        return True
    return known.hides(frozen.target.name, attempt.plan.learning_key[1])


def can_keep_back(attempt: Attempt) -> bool:
    """Whether the answer may hold calls of tools or JSON, which some send in one piece."""
    members = attempt.plan.asked.members
    if b"json" in bytes(members.get("response_format", b"")):
        return True
    if _TOOLS.isdisjoint(members) or bytes(members.get("tool_choice", b"")) == b'"none"':
        return False
    return any(len(bytes(members[name])) > len(b"[]") for name in _TOOLS if name in members)


def lists_reasoning(price: Price | None) -> bool:
    """Whether the price says that its model thinks.

    It does by thoughts beside the limit, or by a rate of their own in any of its schedules.
    """
    if price is None:
        return False
    terms = price.terms
    rates = [terms.rates, *(schedule.rates for schedule in terms.schedules)]
    return terms.reasoning_outside or any(not is_unlisted(rate, "reasoning") for rate in rates)


def thought_tokens(attempt: Attempt, unseen: int) -> int:
    """Return how much of unseen output is booked as thoughts: all of it where these cost more."""
    price = attempt.step.frozen.price
    if price is None:
        return 0
    rates = [price.terms.rates, *(schedule.rates for schedule in price.terms.schedules)]
    return unseen if any(rate.reasoning > rate.output for rate in rates) else 0
