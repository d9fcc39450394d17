"""Results of a try: the line's answer, another try, or waiting as if there was none.

Pure. An answer of the kind that a client would not retry is the line's answer, good or bad. A try
whose connection broke is unknown: the attempt has its row, with what it used, and the line gets
another try with a request id of its own.
"""

from dataclasses import dataclass, replace

import msgspec

from backends.json_mending import mend_json
from gateway.batches.shapes import NO_ANSWER, LineResponse, answered_line, unanswered_line
from ledger.batches.lines import LineClaim

MOST_FAILURES = 5
BACK_OFF_S, LONGEST_S = 2.0, 120.0
PASSING = frozenset((408, 409, 429, 500, 502, 503, 504))
# What the gateway says before it has tried anything.
_UNTRIED = frozenset(("no_idle_engine", "unavailable"))
MADE_ROOM, MADE_ROOM_S = "made_room", 1.0


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """Holds what came back. `retry`: `x-should-retry`, where no target's failure said so.

    `ignored`: names of what was asked and that its target did not get.
    """

    status: int
    request_id: str
    body: bytes
    retry: bool | None = None
    ignored: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """No answer. `sent`: whether the request may have arrived."""

    sent: bool


@dataclass(frozen=True, slots=True)
class LineDone:
    line: bytes
    ok: bool


@dataclass(frozen=True, slots=True)
class LineRetry:
    """Another try, with its own id, after this many seconds; `failed` counts against the line."""

    after_s: float
    failed: bool


@dataclass(frozen=True, slots=True)
class LineDeferred:
    """Nothing was tried: the same try later."""


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
    if isinstance(outcome, ConnectionLost):
        return not outcome.sent
    return outcome.status == 503 and _code(outcome.body) in _UNTRIED


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
    """`None` where the body is no JSON. What only lenient readers read is mended: it is paid."""
    try:
        return answered_line(
            claim.batch_id, claim.number, claim.custom_id,
            LineResponse(answer.status, answer.request_id, answer.body, answer.ignored),
        )  # fmt: skip
    except msgspec.MsgspecError:
        mended = mend_json(answer.body)
        return None if mended is None else _answer_line(claim, replace(answer, body=mended))
