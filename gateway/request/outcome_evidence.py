"""Evidence from an attempt's end: about its target, its usage, and a disconnect."""

from collections.abc import Iterator

from backends.errors import (
    OF_THE_REQUEST,
    DispatchSuperseded,
    FirstTokenTimeout,
    UpstreamOverloaded,
)
from gateway.fleet.model_backoff import LIMITED
from gateway.kinds.outcome import CLIENT_LEFT, REFUSED, AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.client_response import BY_CLIENT
from gateway.request.request_counters import HangupEnd
from ledger.journals.records import AttemptSettled, Status

RESTARTING = 503
# HTTP statuses of requests that were ended, where one can be sent.
TOLD = {
    **dict.fromkeys((*BY_CLIENT, "client_stall"), CLIENT_LEFT), "total": 504, "drain": RESTARTING
}  # fmt: skip
_OF_THE_REQUEST = OF_THE_REQUEST | {REFUSED}


def cancelled(attempt: Attempt, ended_by: str | None) -> AttemptOutcome:
    """Return the outcome of an attempt whose task was cancelled; `ended_by` is the reason."""
    status: Status = "client_gone" if ended_by in BY_CLIENT else "timeout"
    told = TOLD.get(ended_by or "", RESTARTING)
    return AttemptOutcome.cut(attempt.relay, status, told, billable=attempt.sent)


def hangup_of(outcome: AttemptOutcome, *, unseen: bool) -> HangupEnd | None:
    """Return how an attempt whose client disconnected ended, `None` if the client stayed."""
    if unseen and (outcome.is_given_up or outcome.is_silent):
        return "unseen"
    if outcome.status != "client_gone":
        return None
    return "read_to_end" if outcome.read_on else "aborted"


def did_well(attempt: Attempt, outcome: AttemptOutcome) -> bool | None:
    """Return whether the target did well; `None` if the gateway or the client caused the end."""
    if outcome.status == "finished" or outcome.error in _OF_THE_REQUEST:
        return True
    if outcome.error in (FirstTokenTimeout.kind, DispatchSuperseded.kind):
        return None  # the detector updated the load table; a recheck is no failure
    limited = outcome.error == UpstreamOverloaded.kind and outcome.http_status == LIMITED
    if limited and attempt.step.frozen.target.shares_row:
        return None  # only its model is limited: `model_backoff` was updated
    if outcome.error is not None:
        return False
    return True if attempt.first_token_s is not None else None


def usage_findings(record: AttemptSettled) -> Iterator[str]:
    """Yield all findings about a target's usage; the row's flag has only the first."""
    if record.disputed:
        yield "disputed"
    if record.claimed_pusd is not None:
        yield "over_bound"
    if record.partly_read:
        yield "partly_read"
