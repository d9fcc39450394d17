"""Exclusion of targets with charges of unknown price, where a limit on money applies."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.fleet.candidates import CandidateSnapshot
from router.reasons import Reason, Rejection
from router.types import RoutingRequest


def bar_partly_priced(
    request: RoutingRequest, frozen: Sequence[CandidateSnapshot], ceiling_pusd: int | None
) -> RoutingRequest:
    """Return the request with targets barred whose charges are not fully priced.

    This applies only under a limit on money: a hard budget or the policy's cost cap.
    """
    unknown = [entry for entry in frozen if entry.unlimited or entry.unlisted_tier]
    if not unknown:
        return request  # the usual case
    barred: dict[str, Rejection] = {}
    for entry in unknown:
        candidate = entry.candidate
        if candidate.budget_room_pusd is not None or ceiling_pusd is not None:
            barred[candidate.name] = Reason.PARTLY_PRICED, _partly_known(entry)
    if not barred:
        return request
    return replace(request, barred={**barred, **(request.barred or {})})


def _partly_known(entry: CandidateSnapshot) -> str:
    name = entry.candidate.name if entry.price is None else entry.price.name
    terms, fixes = list(entry.unlimited), ["state the fee in a price file"] * bool(entry.unlimited)
    if entry.unlisted_tier:
        terms.append(f"no price of service tier `{entry.unlisted_tier}`")
        fixes.append("list the tier under `tiers` in a price file, or leave `service_tier` out")
    return f"price of {name} partly known ({', '.join(terms)}): {'; '.join(fixes)}"
