"""Outcome of a try: the line's answer, a retry, or a deferral. No I/O.

A response that a client would not retry is the line's answer, successful or not. After a broken
connection the result is unknown: the attempt has its ledger row with its usage, and the line is
retried with a new request id.
"""

from dataclasses import dataclass, replace

import msgspec

from backends.json_mending import mend_json
from gateway.batches.shapes import NO_ANSWER, LineResponse, answered_line, unanswered_line
from gateway.errors import ErrorFault
from ledger.batches.lines import LineClaim

MOST_FAILURES = 5
BACK_OFF_S, LONGEST_S = 2.0, 120.0
PASSING = frozenset((408, 409, 429, 500, 502, 503, 504))
# Error codes of requests that no target was sent.
_UNTRIED = frozenset(("no_idle_engine", "unavailable"))
MADE_ROOM, MADE_ROOM_S = "made_room", 1.0


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """Response of the gateway to a line.

    `retry` is `x-should-retry`, unless a target's failure set it. `fault` is `x-breakeven-fault`.
    `ignored` names the members that the target did not get.
    """

    status: int
    request_id: str
    body: bytes
    retry: bool | None = None
    ignored: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """Try without a response; `sent` is whether the request may have arrived."""

    sent: bool


@dataclass(frozen=True, slots=True)
class LineDone:
    line: bytes
    ok: bool


@dataclass(frozen=True, slots=True)
class LineRetry:
    """Retry with a new request id after `after_s`; `failed` counts against the line's limit."""

    after_s: float
    failed: bool


@dataclass(frozen=True, slots=True)
class LineDeferred:
    """Deferral: nothing was tried, and the same try runs later."""


Verdict = LineDone | LineRetry | LineDeferred


def judge_outcome(claim: LineClaim, outcome: LineAnswer | ConnectionLost) -> Verdict:
    if _is_untried(outcome):
        return LineDeferred()
    if isinstance(outcome, LineAnswer) and _code(outcome.body) == MADE_ROOM:
        return LineRetry(MADE_ROOM_S, failed=False)
    if _is_passing(outcome) and claim.failures + 1 < MOST_FAILURES:
        return LineRetry(min(BACK_OFF_S * 2.0**claim.failures, LONGEST_S), failed=True)
    line = None if isinstance(outcome, ConnectionLost) else _answer_line(claim, outcome)
    if line is None or isinstance(outcome, ConnectionLost):
        line = unanswered_line(claim.batch_id, claim.number, claim.custom_id, code=NO_ANSWER)
        return LineDone(line, ok=False)
    return LineDone(line, ok=outcome.status == 200)


def _is_untried(outcome: LineAnswer | ConnectionLost) -> bool:
    """Return whether no target was sent the line; errors of Messages have no code to tell it."""
    if isinstance(outcome, ConnectionLost):
        return not outcome.sent
    code = _code(outcome.body)
    waits = code is None and outcome.fault == ErrorFault.CAPACITY
    return outcome.status == 503 and (waits or code in _UNTRIED)


def _is_passing(outcome: LineAnswer | ConnectionLost) -> bool:
    if isinstance(outcome, ConnectionLost):
        return True
    return outcome.status in PASSING and outcome.retry is not False


def _code(body: bytes) -> str | None:
    try:
        code = msgspec.json.decode(body)["error"]["code"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None
    return code if isinstance(code, str) else None


def _answer_line(claim: LineClaim, answer: LineAnswer) -> bytes | None:
    """Return the output line, or `None` if the body is not JSON.

    Bodies that only lenient parsers read are repaired, because the answer was paid for.
    """
    try:
        return answered_line(
            claim.batch_id, claim.number, claim.custom_id,
            LineResponse(answer.status, answer.request_id, answer.body, answer.ignored),
        )  # fmt: skip
    except msgspec.MsgspecError:
        mended = mend_json(answer.body)
        return None if mended is None else _answer_line(claim, replace(answer, body=mended))
