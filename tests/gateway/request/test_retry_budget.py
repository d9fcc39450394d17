"""Further tries are free while they answer, and a tenth of all requests when they do not."""

import pytest

from gateway.request.retry_budget import RESERVE, SHARE, RetryBudget


def tries(retries: RetryBudget, requests: int, *, answered: bool) -> int:
    """How many there are when each request's first try fails."""
    count = 0
    for _ in range(requests):
        retries.count_request()
        count += 1
        if retries.allowed:
            retries.record_retry(ok=answered)
            count += 1
    return count


@pytest.mark.parametrize("requests", [1, 100, 10_000])
def test_when_everything_is_down_tries_stay_near_requests(requests: int) -> None:
    assert tries(RetryBudget(), requests, answered=False) <= (1 + SHARE) * requests + RESERVE


def test_while_another_target_answers_every_failure_is_made_good() -> None:
    assert tries(RetryBudget(), 10_000, answered=True) == 20_000


def test_the_first_success_opens_it_again() -> None:
    retries = RetryBudget()
    tries(retries, 500, answered=False)
    for _ in range(10):  # a tenth each
        retries.count_request()
    assert retries.allowed
    assert tries(retries, 100, answered=True) == 200


def test_a_burst_of_failures_is_not_held_against_it_for_ever() -> None:
    """What was under way when everything went down may be more than the reserve."""
    retries = RetryBudget()
    for _ in range(1000):
        retries.record_retry(ok=False)
    for _ in range(round((RESERVE + 1) / SHARE) + 1):
        retries.count_request()
    assert retries.allowed
