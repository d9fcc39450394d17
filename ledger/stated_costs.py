"""Parsing of the cost that a provider reports for a request, next to its token counts.

OpenRouter, xAI, Perplexity and DeepInfra report it in usage, a LiteLLM proxy in a header. A cost
that the LiteLLM library computes from its own price list is ignored. Reported costs are rounded.
They may include what the price book lacks: fees, tiers, uncounted items. A reported cost above the
computed one is a claim. One below it is ignored, because discounts belong in the price book.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from itertools import chain

from ledger.usage_figures import BESIDE, figures_of

PUSD_PER_USD = 10**12
TICKS_PER_USD = 10**10  # xAI's
# No request costs this much; a larger number is not a cost.
LIMIT_USD = 100_000
_PLAIN = ("cost", "total_cost", "cost_usd", "total_cost_usd", "estimated_cost")
_INSIDE = ("total_cost", "total", "total_cost_usd")
_TICKS = "cost_in_usd_ticks"
_NAMES = frozenset((*_PLAIN, _TICKS))  # without any of them, as most usage is, nothing is read
_OWN_KEY = "upstream_inference_cost"  # OpenRouter with a key of one's own: billed by its owner


def stated_claim_pusd(
    usage: Mapping[str, object], cost_pusd: int, *, header: str | None = None
) -> int | None:
    """Return the reported cost if it exceeds `cost_pusd` by more than its own rounding.

    `header`: the dollar amount in a header of the response.
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
    """Return the reported dollars and half of their last digit, or `None` if there are none.

    Of several amounts, also in several places of an answer, the largest counts: another may be a
    part of it.
    """
    return max(chain.from_iterable(map(_figures, figures_of(usage))), default=None)


def _stated_anywhere(usage: Mapping[str, object], header: str) -> tuple[Decimal, Decimal] | None:
    """Return the larger of the amounts in usage and in the header: one may be rounded."""
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
    """Return the fee, plus the model owner's bill if the customer's own key was used (BYOK)."""
    details = usage.get("cost_details")
    if usage.get("is_byok") is not True or not isinstance(details, Mapping):
        return fee
    owner = _dollars(details.get(_OWN_KEY))
    return fee if owner is None else (fee[0] + owner[0], fee[1] + owner[1])


def _dollars(value: object) -> tuple[Decimal, Decimal] | None:
    """Return a positive number or numeric text with half of its last digit, else `None`."""
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
