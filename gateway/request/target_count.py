"""Prompt tokens as counted by the target that would serve the request, if it has a path.

Nothing is generated or charged, so nothing is held or booked. The target is chosen as for an
answer: a prompt is not counted where it may not be answered. If the target returns no count, there
is an estimate.
"""

from typing import Final

import msgspec

from backends.anthropic import COUNT_PATH
from backends.base import Call, Deadlines
from backends.errors import BackendError
from backends.exchange import read_all
from gateway.clock import Clock
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.plan import PlannerProtocol
from gateway.request.refusals import infeasible
from ledger.identity.keys import Identity
from router.reasons import Reason

_DEADLINES: Final = Deadlines(connect_s=2.0, head_s=10.0, idle_s=5.0)
_LIMIT_BYTES: Final = 64 * 1024


class _CountAnswer(msgspec.Struct):
    input_tokens: int


class TargetCount(msgspec.Struct, frozen=True):
    """A prompt's tokens, and the name of the target that counted them."""

    tokens: int
    target: str


async def count_at_target(
    plans: PlannerProtocol,
    asked: InferenceRequest,
    identity: Identity,
    request_id: str,
    clock: Clock,
) -> TargetCount | None:
    """Return the count of the first candidate; None where it has none or does not answer.

    Raises `RequestError` for a request that the format of no target of the model can express.
    """
    native = asked.native
    if native is None:
        return None
    plan = plans.plan(request_id, asked, identity, clock=clock, sticky=_stick_to_nobody)
    if not plan.decision.order:
        if native.refusal is not None and plan.decision.reason is Reason.FEATURE:
            raise infeasible(plan)
        return None
    target = plan.step(plan.decision.order[0]).frozen.target
    if not target.speaks_messages:
        return None
    body = native.body_for(target.upstream_model, max_tokens=None, tells_users=target.tells_users)
    headers = {"x-request-id": f"{request_id}.0", **native.headers}
    try:
        exchange = await target.backend.open(
            Call(COUNT_PATH, body, stream=False, headers=headers, deadlines=_DEADLINES)
        )
        told = await read_all(exchange, _LIMIT_BYTES, timeout_s=_DEADLINES.idle_s)
        if exchange.status != 200:
            return None
        return TargetCount(msgspec.json.decode(told, type=_CountAnswer).input_tokens, target.name)
    except (BackendError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _stick_to_nobody(_key: str) -> None:
    """Return no target: a count begins no session."""
