"""Bounds of the output that a target may have made without reporting it.

For an attempt that the gateway gave up, the provider's term `on_disconnect` decides. A provider
that goes on, or may, can make all that the hold covers. One that stops may have thought unseen, or
withheld a tool call or JSON sent in one piece: at most its highest seen rate, with `MARGIN`, for
the elapsed time. The same holds after a stream that broke off. Only the last usage reports searches
and what they read: such answers are always read to the end, and without usage the whole hold is
assumed. A silent target has failed, unless its model works in silence or its provider goes on. A
complete answer withholds only thoughts.
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

MARGIN = 2.0  # observed rates include the prompt's time and the network's
NOTHING = 0.0
_TOOLS = frozenset(("tools", "functions"))


class UnseenTerms(NamedTuple):
    """The inputs of the bound. `tokens_per_s` is the target's known rate, None if unknown."""

    stops: bool
    streamed: bool
    thinks: bool
    tokens_per_s: float | None
    elapsed_s: float


def unseen_tokens(terms: UnseenTerms) -> float:
    """Return how many tokens may have been made unseen; infinite means the whole hold."""
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
    """Return the output tokens that may be unreported; infinite means the whole hold.

    `is_told`: the target's last figures can be read; None: decided by whether there are any.
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
        return math.inf  # searches, and the results that were read
    if outcome.is_whole:  # the answer has ended, so nothing goes on
        thinks = can_think(attempt, known)
        return _of_thinker(attempt, known, now_s, stops=True) if thinks else NOTHING
    failed = not outcome.billable or outcome.is_told_failure
    if failed or not attempt.plan.asked.stream:
        return NOTHING
    if can_think(attempt, known):
        return _of_thinker(attempt, known, now_s, stops=not attempt.goes_on)
    return _kept_back(attempt, known, now_s) if can_keep_back(attempt) else NOTHING


def _of_thinker(attempt: Attempt, known: TargetOutput, now_s: float, *, stops: bool) -> float:
    """Return the thoughts possible since dispatch; all output of an abandoned whole answer."""
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
    """Return the tokens that a target may have withheld since its last content."""
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
    """Return whether the provider documents that it goes on, and so bills, after a disconnect."""
    return attempt.step.frozen.target.on_disconnect == CONTINUES


def can_think(attempt: Attempt, known: TargetOutput) -> bool:
    """Return whether the model may think unseen: by the request, its price, or observation.

    What only another team's requests showed does not count. A provider whose `features` lack
    `reasoning` has no model that thinks.
    """
    frozen = attempt.step.frozen
    if Feature.REASONING not in frozen.target.features:
        return False
    if asks_to_think(attempt.plan.asked.members) or lists_reasoning(frozen.price):
        return True
    return known.hides(frozen.target.name, attempt.plan.learning_key[1])


def can_keep_back(attempt: Attempt) -> bool:
    """Return whether the answer may hold tool calls or JSON, which may come in one piece."""
    members = attempt.plan.asked.members
    if b"json" in bytes(members.get("response_format", b"")):
        return True
    if _TOOLS.isdisjoint(members) or bytes(members.get("tool_choice", b"")) == b'"none"':
        return False
    return any(len(bytes(members[name])) > len(b"[]") for name in _TOOLS if name in members)


def lists_reasoning(price: Price | None) -> bool:
    """Return whether the price says that its model thinks.

    It does so by thoughts outside the limit, or by a reasoning rate in any of its schedules.
    """
    if price is None:
        return False
    terms = price.terms
    rates = [terms.rates, *(schedule.rates for schedule in terms.schedules)]
    return terms.reasoning_outside or any(not is_unlisted(rate, "reasoning") for rate in rates)


def thought_tokens(attempt: Attempt, unseen: int) -> int:
    """Return how much unseen output is booked as reasoning: all of it where that costs more."""
    price = attempt.step.frozen.price
    if price is None:
        return 0
    rates = [price.terms.rates, *(schedule.rates for schedule in price.terms.schedules)]
    return unseen if any(rate.reasoning > rate.output for rate in rates) else 0
