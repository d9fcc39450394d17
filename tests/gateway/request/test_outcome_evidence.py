"""How hang-ups ended; what endings say of targets is shown in `test_metering`."""

from types import SimpleNamespace

import pytest

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.client_response import CLIENT_GONE
from gateway.request.outcome_evidence import cancelled, did_well, hangup_of, usage_findings

GONE = AttemptOutcome("client_gone", 499)


@pytest.mark.parametrize(
    ("outcome", "unseen", "ended"),
    [
        (GONE, False, "aborted"),
        (GONE, True, "unseen"),
        (AttemptOutcome("finished", 200).without_client(), False, "read_to_end"),
        (AttemptOutcome("timeout", 504), True, "unseen"),
        (AttemptOutcome("timeout", 504), False, None),
        (AttemptOutcome("finished", 200), False, None),
    ],
)
def test_a_hangup_is_counted_by_what_became_of_its_answer(outcome, unseen, ended) -> None:
    assert hangup_of(outcome, unseen=unseen) == ended


@pytest.mark.parametrize(
    ("ended_by", "status", "told"),
    [
        (CLIENT_GONE, "client_gone", 499),
        ("client_stall", "timeout", 499),
        ("total", "timeout", 504),
        ("drain", "timeout", 503),
        (None, "timeout", 503),
    ],
)
@pytest.mark.parametrize("sent", [False, True])
def test_a_cancelled_attempt_ends_as_what_ended_its_request_says(
    ended_by, status, told, sent
) -> None:
    outcome = cancelled(SimpleNamespace(relay=None, sent=sent), ended_by)
    assert (outcome.status, outcome.http_status, outcome.billable) == (status, told, sent)


def test_an_answer_without_its_client_says_no_ill_of_its_target() -> None:
    attempt = SimpleNamespace(first_token_s=11.0)
    assert did_well(attempt, AttemptOutcome("finished", 200).without_client())
    assert did_well(SimpleNamespace(first_token_s=None), GONE) is None


@pytest.mark.parametrize(
    ("disputed", "claimed", "partly_read", "found"),
    [
        (False, None, False, []),
        (False, 0, False, ["over_bound"]),
        (True, 7, True, ["disputed", "over_bound", "partly_read"]),
        (False, None, True, ["partly_read"]),
    ],
)
def test_each_finding_of_a_usage_is_counted(disputed, claimed, partly_read, found) -> None:
    record = SimpleNamespace(disputed=disputed, claimed_pusd=claimed, partly_read=partly_read)
    assert list(usage_findings(record)) == found
