"""A stage's turn to be planned, and what the record of its decision says of it."""

from typing import NamedTuple

import msgspec

from backends.errors import (
    BackendError,
    ContentFiltered,
    ContextTooLong,
    DispatchSuperseded,
    RequestDeclined,
    RequestUnsendable,
)
from gateway.request.routes import RouteContext
from router.explain import pack_bounded
from router.stages import StageCause, StageNote, rejections_of
from router.types import Decision, Policy, RoutingRequest

DECISION_LIMIT_BYTES = 800


class StageTurn(NamedTuple):
    """One stage of a model's targets to plan; `earlier`: what the stages before it decided.

    While others may follow, nothing waits and nothing is tried against its promise, whatever the
    policy says of requests that no target can serve: `is_final` once nobody else could.
    """

    route: RouteContext
    earlier: tuple[Decision, ...] = ()
    is_final: bool = False


def cause_of_error(error: BackendError) -> StageCause:
    """Return why a target that was asked did not answer."""
    if isinstance(error, ContextTooLong):
        return StageCause.CONTEXT
    if isinstance(error, ContentFiltered):
        return StageCause.CONTENT_POLICY
    unable = isinstance(error, DispatchSuperseded | RequestDeclined | RequestUnsendable)
    return StageCause.ANY if unable else StageCause.FAILURE


def note_of(route: RouteContext, earlier: tuple[Decision, ...]) -> StageNote | None:
    """Return what the record says of the stage; None where the model has one."""
    if not route.is_staged:
        return None
    count = route.stage + len(route.later)
    return StageNote(route.stage, count, "+".join(sorted(route.after)), rejections_of(earlier))


def pack_decision(
    request: RoutingRequest, policy: Policy, decision: Decision, note: StageNote | None
) -> bytes:
    """Return the decision as the ledger keeps it."""
    asked = request, policy, decision
    return pack_bounded(DECISION_LIMIT_BYTES, msgspec.msgpack.encode, asked, note)
