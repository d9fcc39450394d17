"""Reads what a provider says that a request costs, beside its counts.

OpenRouter, xAI, Perplexity and DeepInfra state it in their usage, a LiteLLM proxy in a header. What
the LiteLLM library computes here from its own list of prices is stated by nobody. A stated cost is
rounded as it is written, and a price book may know less than it: fees, tiers and whatever nobody
counts are in it. What is stated beyond the computed cost is claimed. Below the computed cost it
says nothing: discounts are the price book's.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from itertools import chain

from ledger.usage_figures import BESIDE, figures_of

PUSD_PER_USD = 10**12
TICKS_PER_USD = 10**10  # xAI's
# No request costs as much; larger figures are none.
LIMIT_USD = 100_000
_PLAIN = ("cost", "total_cost", "cost_usd", "total_cost_usd", "estimated_cost")
_INSIDE = ("total_cost", "total", "total_cost_usd")
_TICKS = "cost_in_usd_ticks"
_NAMES = frozenset((*_PLAIN, _TICKS))  # without any of them, as most usage is, nothing is read
_OWN_KEY = "upstream_inference_cost"  # OpenRouter with a key of one's own: billed by its owner


def stated_claim_pusd(
    usage: Mapping[str, object], cost_pusd: int, *, header: str | None = None
) -> int | None:
    """Return the stated cost, where it is above `cost_pusd` by more than its own rounding.

    `header`: dollars that a header of the answer states.
    """
    if header is None and BESIDE not in usage and _NAMES.isdisjoint(usage):
        return None
    found = stated_cost(usage) if header is None else _stated_anywhere(usage, header)
    if found is None:
        return None
    stated, rounding = found
    claimed = int(stated * PUSD_PER_USD)
    return claimed if claimed - int(rounding * PUSD_PER_USD) > cost_pusd else None


def stated_cost(usage: Mapping[str, object]) -> tuple[Decimal, Decimal] | None:
    """Return the stated dollars and half of their last digit, None where none can be read.

    Of several, also in several places of an answer, the largest: one may be a part of another.
    """
    return max(chain.from_iterable(map(_figures, figures_of(usage))), default=None)


def _stated_anywhere(usage: Mapping[str, object], header: str) -> tuple[Decimal, Decimal] | None:
    """Return the larger of what usage and a header state: one may be rounded."""
    figures = (stated_cost(usage), _dollars(header.strip()))
    return max((figure for figure in figures if figure is not None), default=None)


def _figures(usage: Mapping[str, object]) -> Iterator[tuple[Decimal, Decimal]]:
    for name in _PLAIN:
        value = usage.get(name)
        inside = value if isinstance(value, Mapping) else {}
        for figure in (value, *(inside.get(total) for total in _INSIDE)):
            if (found := _dollars(figure)) is not None:
                yield _with_own_key(usage, found)
    ticks = usage.get(_TICKS)
    if type(ticks) is int and 0 < ticks <= LIMIT_USD * TICKS_PER_USD:
        yield Decimal(ticks) / TICKS_PER_USD, Decimal(1) / TICKS_PER_USD / 2


def _with_own_key(
    usage: Mapping[str, object], fee: tuple[Decimal, Decimal]
) -> tuple[Decimal, Decimal]:
    """The fee and what the owner of the model bills, where a key of one's own was used."""
    details = usage.get("cost_details")
    if usage.get("is_byok") is not True or not isinstance(details, Mapping):
        return fee
    owner = _dollars(details.get(_OWN_KEY))
    return fee if owner is None else (fee[0] + owner[0], fee[1] + owner[1])


def _dollars(value: object) -> tuple[Decimal, Decimal] | None:
    """A number above zero, also one that is written as a text, with half of its last digit."""
    if type(value) not in (int, float, str) or len(str(value)) > 40:
        return None
    try:
        dollars = Decimal(str(value))
    except InvalidOperation:
        return None
    if not dollars.is_finite() or not 0 < dollars <= LIMIT_USD:
        return None
    exponent = dollars.as_tuple().exponent
    places = exponent if isinstance(exponent, int) else 0
    return dollars, Decimal(5).scaleb(min(places, 0) - 1)
