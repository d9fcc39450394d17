"""The plausible part of a claim: it reduces budgets until the claim is reconciled.

It follows from the context and the longest answer that the provider states. A false figure reduces
a budget by one longest answer at most, however large it is.
"""

from typing import NamedTuple

from msgspec.structs import replace

from gateway.fleet.prompt_bound import most_read
from gateway.kinds import KINDS
from gateway.request.attempt import Attempt
from gateway.request.reported_usage import bounded_request, bounds_of, reads_elsewhere
from gateway.request.usage_checks import TEMPLATE_TOKENS, UsageBounds, fit_tokens, least_of
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, tier_cost_pusd
from ledger.prices.modellimits import CONTEXT_UNSTATED, ModelLimits
from router.target_output import OVERRUN_LIMIT

SEARCHES_UNSTATED = 100  # of one answer: five times what deep research was seen to make (2026-11)


class ClaimTerms(NamedTuple):
    """Bounds of a claim. What fits `held`, the bounds of the hold, is always plausible.

    `limits` is None where none are stated: then bounds above any model's apply. `reads_elsewhere`:
    the target may read more than it was sent, such as a search's results. `contexts` is how many
    contexts all prompts can fill, None where each text of a list may fill one.
    """

    held: UsageBounds
    limits: ModelLimits | None
    reads_elsewhere: bool
    contexts: int | None = 1


def plausible_tokens(claim: TokenCounts, terms: ClaimTerms, searches_limit: int) -> TokenCounts:
    """Return the claim cut to what its model can have read and made.

    `searches_limit` is the price's, 0 if it states none.
    """
    held, limits = terms.held, terms.limits
    output, context = OVERRUN_LIMIT, CONTEXT_UNSTATED
    if limits is not None:
        output, context = limits
    prompt = context if terms.reads_elsewhere else held.prompt + TEMPLATE_TOKENS
    if terms.contexts is not None:
        prompt = min(prompt, context * terms.contexts)
    most = held._replace(
        output=max(held.output, output * held.choices), prompt=max(held.prompt, prompt)
    )
    searches = min(claim.searches, searches_limit or SEARCHES_UNSTATED)
    return replace(fit_tokens(claim, most), searches=searches)


def plausible_pusd(
    claim: TokenCounts, price: Price, tier: str | None, *, booked_pusd: int, claimed_pusd: int
) -> int:
    """Return the cost of a plausible claim above the booked cost, at most the claimed cost."""
    cost, _ = tier_cost_pusd(claim, price, tier)
    return max(0, min(cost, claimed_pusd) - booked_pusd)


def plausible_claim(attempt: Attempt, told: TokenCounts) -> TokenCounts:
    """Return the plausible part of what an attempt's target claims.

    `told` has the target's figures, as far as the received text does not contradict them.
    """
    frozen, request = attempt.step.frozen, attempt.plan.request
    units = KINDS[request.kind].units
    if units is not None:
        most = units.most(bounded_request(attempt))
        longest = OVERRUN_LIMIT if frozen.limits is None else frozen.limits.output_tokens
        return least_of(told, replace(most, output=max(most.output, longest)))
    elsewhere = reads_elsewhere(attempt, told)
    terms = ClaimTerms(bounds_of(attempt), frozen.limits, elsewhere, most_read(request, 1))
    searches = 0 if frozen.price is None else frozen.price.terms.searches_limit
    return plausible_tokens(told, terms, searches)
