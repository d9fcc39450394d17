"""Application of policies to kinds of content: live, hypothetical and replayed. No I/O."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.fleet.fleet import Target
from gateway.kinds.inference_request import InferenceRequest
from router.content import UNKNOWN, ContentAction, ContentTerms, kinds_under
from router.reasons import Reason
from router.types import Residency, RoutingRequest


def kept_kinds(asked: InferenceRequest, terms: ContentTerms) -> str:
    """Return the kinds that keep a request inside; `unknown` if some were not checked.

    The rule may differ from the one at inspection time: an hour began, or the prompt was shortened.
    Its kinds were then not looked for, so the request may not leave.
    """
    content = asked.content
    if content is None:
        return UNKNOWN if terms else ""
    if content.terms != terms and not set(terms) <= set(content.terms):
        return content.kept_for or UNKNOWN
    return content.kept_for


def recorded_kinds(row: str | None) -> frozenset[str]:
    """Return the kinds in a ledger row's text such as `card=2 email=1; mask`."""
    found = (row or "").partition(";")[0].split()
    return frozenset(word.partition("=")[0] for word in found if "=" in word)


def apply_content(
    request: RoutingRequest, row: str | None, terms: ContentTerms, targets: Sequence[Target]
) -> RoutingRequest:
    """Return a hypothetical or past request restricted by its content: inside only, or barred.

    `row` lists the kinds found, without text; None: not inspected, and none is assumed.
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
