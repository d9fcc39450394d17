"""Controls: each invariant is found broken where it is, and nothing else is."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from adversary_calls import AdversaryCall, AdversarySchedule
from adversary_judge import faults_of
from adversary_world import CallResult

from ledger.journals.records import TokenCounts
from ledger.prices.book import PriceTerms, rates_from

MADE = TokenCounts(input=10, output=5)
BILL, HOLD, LIMIT = 60, 80, 100
TERMS = PriceTerms(rates_from({"input": 1, "output": 10}))
CALL = AdversaryCall("/v1/chat/completions", b"{}", (), MADE)
BESIDE = replace(CALL, is_odd=True, is_beside=True)
DEAR = replace(CALL, body=b"an image", is_beyond=True)
LEFT = replace(CALL, made=None, least=MADE, leave_at=0)
LIE = replace(CALL, made=None, least=MADE, is_lie=True)


def played(call=CALL, *, booked=BILL, spent=BILL, account="up", tier=None, **settled) -> CallResult:
    record = SimpleNamespace(cost_pusd=booked, disputed=False, **settled)
    opened = SimpleNamespace(bound_pusd=HOLD, provider=account)
    return CallResult(call, LIMIT, HOLD, True, opened, record, None, spent, asked_tier=tier)


def refused(why: str, *, bound: int) -> CallResult:
    return CallResult(CALL, LIMIT, bound, True, refused=why)


def names(*results: CallResult, terms=TERMS) -> list[str]:
    schedule = AdversarySchedule(terms, LIMIT, tuple(result.call for result in results))
    return [fault.partition(":")[0] for fault in faults_of(schedule, list(results))]


def marked(result: CallResult, **marks) -> CallResult:
    vars(result.settled).update(marks)
    return result


@pytest.mark.parametrize(
    ("results", "faults"),
    [
        ((played(),), []),
        ((played(spent=LIMIT + 1),), ["limit"]),
        ((played(account="openai"),), ["account"]),
        ((played(replace(CALL, asks="default"), tier="priority"),), ["tier"]),
        ((played(replace(CALL, asks="default"), tier="default"),), []),
        ((played(LIE, booked=HOLD + 1, unknown_tier=True),), ["hold"]),
        ((played(booked=None),), ["priced", "bill"]),
        ((played(booked=BILL - 1),), ["bill"]),
        ((played(booked=BILL - 1, claimed_pusd=BILL),), ["bound"]),
        ((played(replace(CALL, is_odd=True), booked=BILL - 1, claimed_pusd=BILL),), []),
        ((played(replace(CALL, is_beyond=True), booked=BILL - 1, claimed_pusd=BILL),), []),
        ((played(claimed_pusd=BILL + 1),), ["bill", "bound"]),
        ((marked(played(), disputed=True),), ["disputed"]),
        ((marked(played(replace(CALL, is_odd=True)), disputed=True),), []),
        ((played(replace(CALL, made=TokenCounts()), booked=0),), []),
        ((played(replace(CALL, made=TokenCounts()), booked=1),), ["bill"]),
        ((marked(played(LIE), disputed=True),), []),
        ((played(LIE),), ["mark"]),
        ((marked(played(LIE, booked=BILL - 1), partly_read=True),), ["least"]),
        ((refused("budget", bound=LIMIT + 1),), []),
        ((refused("budget", bound=LIMIT),), ["refused"]),
        ((refused("context", bound=LIMIT + 1),), ["refused"]),
        ((played(), played()), []),
        ((played(), replace(played(), bound_pusd=HOLD + 1)), ["same"]),
        ((played(), replace(played(), bound_pusd=HOLD + 1, is_limited=False)), []),
        ((played(BESIDE), replace(played(BESIDE), bound_pusd=HOLD + 1)), []),
        ((played(BESIDE), replace(played(BESIDE), bound_pusd=HOLD - 1)), ["same"]),
        ((played(BESIDE), played(BESIDE, booked=BILL - 1, claimed_pusd=BILL)), ["raised"]),
        ((played(DEAR), replace(played(DEAR), bound_pusd=HOLD + 1)), []),
        ((played(DEAR), replace(played(DEAR), bound_pusd=HOLD - 1)), ["same"]),
        ((played(DEAR), played(DEAR, booked=BILL - 1, claimed_pusd=BILL)), ["raised"]),
        ((played(), played(DEAR), replace(played(), bound_pusd=HOLD + 1)), ["same"]),  # a text
        ((played(LEFT),), []),
        ((marked(played(LEFT), disputed=True),), ["disputed"]),
        ((played(LEFT, booked=BILL - 1),), ["least"]),
    ],
)
def test_a_broken_invariant_is_named(results, faults) -> None:
    assert names(*results) == faults


def test_the_fee_of_a_request_is_part_of_the_bill() -> None:
    terms = PriceTerms(TERMS.rates, request_pusd=7)
    assert names(played(booked=BILL + 7), terms=terms) == []
    assert names(played(), terms=terms) == ["bill"]
