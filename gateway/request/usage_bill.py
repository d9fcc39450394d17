"""Bill of an attempt's usage: the cost within its hold, and the claim above it. Pure.

It is the only place that compares a cost with a hold, for answers and for lines of providers'
batches.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec.structs import astuple

from gateway.request.booked_usage import BookedUsage
from gateway.request.plausible_claims import plausible_pusd
from ledger.journals.records import Basis, TokenCounts
from ledger.prices.book import Price, dearest_usage, tier_cost_pusd
from ledger.prices.rates import ReachableMedia
from ledger.stated_costs import stated_claim_pusd

_PARTS = 2**20  # resolution of the cut, where nothing else fits


class HeldUsage(Protocol):
    """The hold of an attempt; used only where the bill differs from the report.

    Implementations are in `gateway.request.charging` and `gateway.batches`.
    """

    @property
    def media(self) -> ReachableMedia:
        """Return the kinds besides text that may be charged."""

    def fit(self, tokens: TokenCounts) -> tuple[TokenCounts, ...]:
        """Return token counts within the hold, from the closest to the reported one on.

        The last one is the whole hold, in plain tokens.
        """

    def is_beyond_units(self, tokens: TokenCounts, /) -> bool:
        """Return whether more searches or seconds are counted than the request can have."""

    def plausible(self, told: TokenCounts) -> TokenCounts:
        """Return these tokens cut to what the model can have read and made."""


class BillTerms(msgspec.Struct, frozen=True):
    """Terms of a bill. `tier` is what the answer named; None means that `asked_tier` counts.

    An empty `asked_tier` is the standard one. `held_pusd` is 0 without a hold. `usage` is the
    target's own, which may state a cost. `stated_cost` is the cost in a header of the answer, in
    dollars.
    """

    price: Price
    tier: str | None
    asked_tier: str
    held_pusd: int
    usage: Mapping[str, Any] | None = None
    stated_cost: str | None = None


class UsageBill(msgspec.Struct, frozen=True):
    """The booked tokens and cost of an attempt, and what its target claims beyond them.

    `claimed_pusd` is by the target's own figures, if above the cost; `plausible_pusd` is the
    possible part of it. `is_listed`: the price has the tier. `cut`: believed tokens above the hold,
    else None.
    """

    tokens: TokenCounts
    basis: Basis
    cost_pusd: int
    tier: str | None
    is_listed: bool
    disputed: bool
    claimed_pusd: int | None = None
    plausible_pusd: int | None = None
    cut: TokenCounts | None = None


def bill_usage(used: BookedUsage, terms: BillTerms, held: HeldUsage) -> UsageBill:
    """Return the bill: the cost of the tokens, at most what was held."""
    tokens, basis, disputed, price = used.tokens, used.basis, used.disputed, terms.price
    tier = terms.tier
    if used.unseen:
        # The usage may be of any kind and tier: the hold covers the dearest.
        told = used.is_prompt_told
        tokens, tier = dearest_usage(tokens, price, held.media, tier=tier, is_prompt_told=told)
    elif tier is None:
        tier = terms.asked_tier or None
    cost, listed = tier_cost_pusd(tokens, price, tier)
    claimed = cost if used.claim is None else tier_cost_pusd(used.claim, price, tier)[0]
    stated = 0
    if terms.usage or terms.stated_cost:
        most = max(cost, claimed)
        stated = stated_claim_pusd(terms.usage or {}, most, header=terms.stated_cost) or 0
    told_tokens, cut = used.plausible or tokens, None
    searches = price.terms.searches_limit
    if 0 < searches < tokens.searches:  # more than the price states
        tokens, basis = msgspec.structs.replace(tokens, searches=searches), "bound"
        cost = tier_cost_pusd(tokens, price, tier)[0]
    if terms.held_pusd and cost > terms.held_pusd:
        cut = None if disputed else tokens
        disputed = disputed or held.is_beyond_units(tokens)
        tokens, cost = _fit_hold(tokens, price, tier, terms.held_pusd, held)
        basis = "bound"
    claimed = max(claimed, stated)
    if claimed <= cost:
        return UsageBill(tokens, basis, cost, tier, listed, disputed, cut=cut)
    plausible = plausible_pusd(
        held.plausible(told_tokens), price, tier, booked_pusd=cost, claimed_pusd=claimed
    )
    # A stated cost includes what is not counted: as much as was held is plausible.
    plausible = max(plausible, min(stated, terms.held_pusd) - cost)
    return UsageBill(tokens, basis, cost, tier, listed, disputed, claimed, plausible, cut)


def _fit_hold(
    tokens: TokenCounts, price: Price, tier: str | None, held_pusd: int, held: HeldUsage
) -> tuple[TokenCounts, int]:
    """Return the tokens that fit into the hold, and their cost."""
    fitting = held.fit(tokens)
    for fitted in fitting:
        cost, _ = tier_cost_pusd(fitted, price, tier)
        if cost <= held_pusd:
            return fitted, cost
    return _cut_to(fitting[-1], price, tier, held_pusd)


def _cut_to(
    tokens: TokenCounts, price: Price, tier: str | None, held_pusd: int
) -> tuple[TokenCounts, int]:
    """Return the share of the held tokens that the money covers: the hold had other bounds."""

    def share(parts: int) -> TokenCounts:
        return TokenCounts(*(count * parts // _PARTS for count in astuple(tokens)))

    low, high = 0, _PARTS
    while low < high:
        middle = (low + high + 1) // 2
        if tier_cost_pusd(share(middle), price, tier)[0] <= held_pusd:
            low = middle
        else:
            high = middle - 1
    fitted = share(low)
    return fitted, tier_cost_pusd(fitted, price, tier)[0]
