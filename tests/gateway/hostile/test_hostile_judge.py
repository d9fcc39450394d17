"""The judges object to each invariant that does not hold."""

import pytest
from billing_provider import Bill, ProviderCall
from hostile_judge import faults_of

ROW = {"attempt_id": "r.1", "cost_pusd": 100 * 10**6, "bound_pusd": 10**9, "claimed_pusd": None}


def billed(tokens: int) -> ProviderCall:
    call = ProviderCall("/first/v1", {"x-request-id": "r.1"}, {}, None)
    call.bill = Bill(input=tokens)
    return call


def test_an_honest_row_has_no_fault() -> None:
    assert faults_of([ROW], [billed(100)], 1.0) == []
    claimed = {**ROW, "claimed_pusd": 200 * 10**6}
    assert faults_of([claimed], [billed(200)], 1.0) == []


@pytest.mark.parametrize(
    ("rows", "limit_usd", "fault"),
    [
        ([ROW], 0.00001, "limit"),
        ([{**ROW, "bound_pusd": 10}], 1.0, "hold"),
        ([{**ROW, "cost_pusd": None}], 1.0, "priced"),
        ([{**ROW, "cost_pusd": 99 * 10**6}], 1.0, "bill"),
        ([ROW, ROW], 1.0, "row"),
    ],
)
def test_each_fault_is_named(rows, limit_usd, fault) -> None:
    (found,) = faults_of(rows, [billed(100)], limit_usd)
    assert found.startswith(fault)
