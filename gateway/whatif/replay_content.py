"""What a policy would do by the kinds of content that the ledger has of a recorded request: pure.

The ledger has kinds and counts, no text. A request that was not inspected then has none, and is
replayed as if nothing had been found in it.
"""

from collections.abc import Sequence
from dataclasses import replace

from gateway.fleet.fleet import Target
from router.content import ContentAction, ContentTerms, kinds_under
from router.reasons import Reason
from router.types import Residency, RoutingRequest


def recorded_kinds(row: str | None) -> frozenset[str]:
    """Return the kinds of a row's `card=2 email=1; mask`."""
    found = (row or "").partition(";")[0].split()
    return frozenset(word.partition("=")[0] for word in found if "=" in word)


def apply_content(
    request: RoutingRequest, row: str | None, terms: ContentTerms, targets: Sequence[Target]
) -> RoutingRequest:
    """Return the request as the terms let it be routed: inside, or nowhere."""
    if not terms or not row:
        return request
    kinds = recorded_kinds(row)
    refused = kinds_under(terms, ContentAction.REFUSE, kinds)
    if refused:
        why = Reason.CONTENT, f"refused: {', '.join(refused)}"
        return replace(request, barred={target.name: why for target in targets})
    kept = kinds_under(terms, ContentAction.KEEP_INSIDE, kinds)
    if not kept:
        return request
    return replace(request, residency=Residency.INTERNAL_ONLY, kept_for=", ".join(kept))
