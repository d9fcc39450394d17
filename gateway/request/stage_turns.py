"""The turn of a stage to be planned, and its note in the decision's record."""

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
    """One stage of a model's targets to plan; `earlier` has the decisions of stages before it.

    While another stage may follow, no request waits or is tried against its SLO, whatever the
    policy's fallback. `is_final` is set once none can follow.
    """

    route: RouteContext
    earlier: tuple[Decision, ...] = ()
    is_final: bool = False


def cause_of_error(error: BackendError) -> StageCause:
    """Return the stage cause of a target's failure."""
    if isinstance(error, ContextTooLong):
        return StageCause.CONTEXT
    if isinstance(error, ContentFiltered):
        return StageCause.CONTENT_POLICY
    unable = isinstance(error, DispatchSuperseded | RequestDeclined | RequestUnsendable)
    return StageCause.ANY if unable else StageCause.FAILURE


def note_of(route: RouteContext, earlier: tuple[Decision, ...]) -> StageNote | None:
    """Return the note on the stage for the record; None where the model has one stage."""
    if not route.is_staged:
        return None
    count = route.stage + len(route.later)
    return StageNote(route.stage, count, "+".join(sorted(route.after)), rejections_of(earlier))


def pack_decision(
    request: RoutingRequest, policy: Policy, decision: Decision, note: StageNote | None
) -> bytes:
    """Return the decision as the ledger stores it."""
    asked = request, policy, decision
    return pack_bounded(DECISION_LIMIT_BYTES, msgspec.msgpack.encode, asked, note)
