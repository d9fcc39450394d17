"""Request fees by search depth: each depth is a tier of the price.

Used by Perplexity: a request may set a depth (`web_search_options.search_context_size`), and usage
reports the depth used (docs.perplexity.ai/getting-started/pricing). The standard tier has the
highest fee. It applies if neither names a depth that the price lists, and to holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ledger.prices.rates import STANDARD, PriceTerms, request_fee_pusd

MEMBER: Final = "search_context_size"
DEPTHS: Final = ("low", "medium", "high")
_TIERS: Final = {depth: f"search-{depth}" for depth in DEPTHS}


def depth_of_term(term: str) -> str | None:
    """Return the tier of a depth by its name in the map, `None` for other names."""
    return _TIERS.get(term.removeprefix(f"{MEMBER}_")) if term.startswith(MEMBER) else None


def has_depths(terms: PriceTerms) -> bool:
    """Return whether the price lists fees by depth."""
    return any(schedule.request_pusd is not None for schedule in terms.schedules)


def charged_depth(terms: PriceTerms, usage: Sequence[Mapping[str, Any]], asked: object) -> str:
    """Return the tier of the reported depth, else of the requested one, else the standard one.

    If the answer reports several depths, the most expensive one counts.
    """
    told = [figure[MEMBER] for figure in usage if MEMBER in figure] or [asked]
    listed = {step.tier for step in terms.schedules if step.request_pusd is not None}
    tiers = [_TIERS.get(depth, STANDARD) if isinstance(depth, str) else STANDARD for depth in told]
    found = [tier if tier in listed else STANDARD for tier in tiers]
    return max(found, key=lambda tier: request_fee_pusd(terms, tier))
