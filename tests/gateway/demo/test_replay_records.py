"""Records of replayed requests: times, verdicts on the SLO, and the decision that fits."""

import random

import pytest

from gateway.demo.demand import arrival
from gateway.demo.replay_fleet import DemoApi
from gateway.demo.replay_records import (
    DECISION_LIMIT_BYTES,
    DemoCaller,
    DemoRequest,
    DemoResult,
    api_result,
    refused_record,
    settled_record,
)
from ledger.journals.records import TokenCounts
from router.decide import decide
from router.request_kinds import RequestKind
from router.types import InfeasibleAction, OutputMoments, Policy, RoutingRequest, Slo

POLICY = Policy("p", slo=Slo(ttft_ms=1000, tpot_ms=50), otherwise=InfeasibleAction.REJECT)


@pytest.fixture
def asked():
    this_arrival = arrival(random.Random(2), 1000.0)
    request = RoutingRequest(
        kind=RequestKind.CHAT, model="chat", prompt_tokens=10, prompt_tokens_bound=12, max_tokens=9,
        output=OutputMoments(0, 1.0, 1.0, 1.0),
    )  # fmt: skip
    caller = DemoCaller("org", "team", None, "key")
    return DemoRequest(7, this_arrival, caller, request, POLICY, decide(request, POLICY, ()), ())


def result(status="finished", ttft_s=0.5, duration_s=1.0, output=11):
    return DemoResult(status, TokenCounts(10, output=output), "reported", ttft_s, duration_s, 5)


@pytest.mark.parametrize(
    ("made", "met"),
    [
        (result(), True),
        (result(ttft_s=1.1, duration_s=1.2), False),
        (result(duration_s=1.1), False),
        (result(duration_s=9.0, output=1), True),
        (result(status="upstream_error"), False),
        (result(status="client_gone"), None),
    ],
)
def test_the_slo_is_judged_as_metering_does(asked, made, met):
    record = settled_record(asked, made)
    assert record.slo_met is met
    assert record.attempt_id == "replay-000007.1"
    assert record.settled_us == round((1000.0 + made.duration_s) * 1e6)


def test_a_refusal_names_its_reason(asked):
    record = refused_record(asked)
    assert (record.http_status, record.reason) == (429, "model")
    assert 0 < len(record.decision) <= DECISION_LIMIT_BYTES


def test_an_api_answers_patient_clients_whole():
    rng = random.Random(5)
    arrivals = [arrival(rng, 0.0) for _ in range(400)]
    api = DemoApi("sim/x", "sim", "x", None)
    for each_arrival in arrivals:
        made = api_result(api, each_arrival, 0.4, 0.01)
        assert made.cost_pusd is None
        assert made.tokens.input == each_arrival.prompt_tokens
        if each_arrival.patience is None:
            assert (made.status, made.tokens.output) == ("finished", each_arrival.output_tokens)
        else:
            assert made.status == "client_gone"
            assert 1 <= made.tokens.output <= each_arrival.output_tokens
    assert {each_arrival.patience is None for each_arrival in arrivals} == {True, False}
