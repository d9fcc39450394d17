"""Applies a policy to kinds of content, live, supposed and replayed: pure."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.fleet.fleet import Target
from gateway.kinds.inference_request import InferenceRequest
from router.content import UNKNOWN, ContentAction, ContentTerms, kinds_under
from router.reasons import Reason
from router.types import Residency, RoutingRequest


def kept_kinds(asked: InferenceRequest, terms: ContentTerms) -> str:
    """Return the kinds for which a request may not leave, `unknown` where nobody looked for them.

    Its rule may be another one than when it was inspected (an hour began, it was shortened): what
    that one says was not looked for, so nobody can tell that it may leave.
    """
    content = asked.content
    if content is None:
        return UNKNOWN if terms else ""
    if content.terms != terms and not set(terms) <= set(content.terms):
        return content.kept_for or UNKNOWN
    return content.kept_for


def recorded_kinds(row: str | None) -> frozenset[str]:
    """Return the kinds of a row's `card=2 email=1; mask`."""
    found = (row or "").partition(";")[0].split()
    return frozenset(word.partition("=")[0] for word in found if "=" in word)


def apply_content(
    request: RoutingRequest, row: str | None, terms: ContentTerms, targets: Sequence[Target]
) -> RoutingRequest:
    """Return a supposed or past request as the terms let it be routed: inside, or nowhere.

    `row` has the kinds that it holds, no text; None: nobody looked, and nothing is supposed.
    """
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
