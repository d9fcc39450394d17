"""How hang-ups ended; what endings say of targets is shown in `test_metering`."""

from types import SimpleNamespace

import pytest

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.outcome_evidence import did_well, hangup_of

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


def test_an_answer_without_its_client_says_no_ill_of_its_target() -> None:
    attempt = SimpleNamespace(first_token_s=11.0)
    assert did_well(attempt, AttemptOutcome("finished", 200).without_client())
    assert did_well(SimpleNamespace(first_token_s=None), GONE) is None
