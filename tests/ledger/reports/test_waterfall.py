"""Where a request's time went: spans without a gap, and only what is known is said to be."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert

from ledger.fleet.samples import FleetSample, add_capacity, add_round_trips, add_samples
from ledger.orm import tables as orm
from ledger.queries.fleet import round_trips
from ledger.reports.waterfall import (
    AttemptFacts,
    arrived_us,
    is_far,
    lines,
    spans,
    warning,
    waterfall,
)

T = 1_795_000_000_000_000
OWN = AttemptFacts(
    "r.1", "pool:a/0", "ok", T, T + 2_000, T + 500_000, 120_000, 490_000, 400, 80_000
)


def told(facts: AttemptFacts) -> list[tuple]:
    return [(span.what, span.start_us, span.length_us, span.how) for span in spans(facts, T)]


def test_an_own_answer_is_divided_by_its_step_model():
    assert told(OWN) == [
        ("gateway", 0, 10_000, "measured"),
        ("network", 10_000, 400, "measured"),
        ("queue", 10_400, 39_600, "what is left"),
        ("prefill", 50_000, 80_000, "by its step model"),
        ("decode", 130_000, 370_000, "measured"),
    ]


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"rtt_us": None}, ["gateway", "queue", "prefill", "decode"]),
        ({"prefill_us": None}, ["gateway", "network", "first token", "decode"]),
        ({"rtt_us": None, "prefill_us": None}, ["gateway", "first token", "decode"]),
        ({"ttft_us": None}, ["gateway", "network", "answer"]),
        ({"settled_us": None, "duration_us": None}, ["gateway"]),
    ],
)
def test_what_is_not_known_is_not_divided(changes, kinds):
    assert [line[0] for line in told(replace(OWN, **changes))] == kinds


def test_what_stood_in_line_did_so_and_was_no_work_of_the_gateways():
    assert told(replace(OWN, line_us=9_000))[:2] == [
        ("in line", 0, 9_000, "measured"), ("gateway", 9_000, 1_000, "measured"),
    ]  # fmt: skip
    still = replace(OWN, line_us=1_500, settled_us=None, duration_us=None)
    assert [line[:3] for line in told(still)] == [("in line", 0, 1_500), ("gateway", 1_500, 500)]


def test_a_model_that_says_more_than_was_waited_leaves_no_queue():
    found = {line[0]: line[2] for line in told(replace(OWN, prefill_us=900_000))}
    assert (found["queue"], found["prefill"], found["decode"]) == (0, 119_600, 370_000)


@given(
    since=st.integers(0, 10**6),
    opened=st.integers(0, 10**6),
    duration=st.integers(0, 10**7),
    ttft=st.none() | st.integers(0, 10**7),
    rtt=st.none() | st.integers(0, 10**6),
    prefill=st.none() | st.integers(0, 10**7),
)
def test_spans_touch_and_add_up_to_the_whole_try(since, opened, duration, ttft, rtt, prefill):
    end = T + since + opened + duration
    facts = AttemptFacts("r.1", "t", "ok", T + since, T + since, end, ttft, duration, rtt, prefill)
    found = spans(facts, T)
    assert all(finding.length_us >= 0 for finding in found)
    assert all(item.start_us + item.length_us == two.start_us for item, two in pairwise(found))
    assert found[0].start_us == since
    assert found[-1].start_us + found[-1].length_us == end - T


def test_a_way_that_is_much_of_the_first_token_is_warned_of():
    assert warning(OWN) is None
    away = warning(replace(OWN, rtt_us=14_000))
    assert away is not None
    assert away.startswith("the way to pool:a/0 and back takes 14.0 ms of 120 ms")


@pytest.mark.parametrize(
    ("rtt", "whole", "much"),
    [(None, 10**5, False), (10**5, None, False), (999, 2_000, False), (1_000, 10_000, True),
     (9_999, 10**5, False), (10_000, 10**5, True)],
)  # fmt: skip
def test_far_is_a_tenth_and_a_millisecond(rtt, whole, much):
    assert is_far(rtt, whole) is much


def test_an_id_of_ours_tells_when_its_request_came():
    assert arrived_us(f"req_{T // 1000:012x}{'0' * 16}") == T
    assert arrived_us("mine") is None


@pytest.fixture
def request_id(engine) -> str:
    """A request that an API failed first and an own engine answered."""
    name = f"req_{T // 1000:012x}{'0' * 16}"
    common = {
        "request_id": name, "key_id": "k", "team_id": "t", "org_id": "o", "kind": "chat",
        "stream": True, "model": "m", "upstream_model": "m", "simulated": False, "policy": "p",
        "policy_version": "v", "reason": "cheapest", "bound_pusd": 1, "prompt_tokens_estimate": 1,
        "journal": "j",
    }  # fmt: skip
    first = {
        "attempt_id": f"{name}.1", "attempt_no": 1, "opened_us": T + 2_000, "target": "openai/x",
        "backend": "api", "settled_us": T + 52_000, "duration_us": 50_000, "status": "failed",
    }  # fmt: skip
    second = {
        "attempt_id": f"{name}.2", "attempt_no": 2, "opened_us": T + 53_000, "target": "pool:a/0",
        "backend": "own", "pool": "a", "engine": "0", "settled_us": T + 400_000,
        "duration_us": 346_000, "ttft_us": 100_000, "status": "ok", "input_tokens": 600,
        "cached_tokens": 100, "output_tokens": 9,
    }  # fmt: skip
    with engine.begin() as connection:
        for row in (first, second):
            connection.execute(insert(orm.AttemptRow).values(**common, **row))
    capacity = {
        "at_us": T - 10**9, "pool": "a", "engine": "pool:a/0", "source": "measured",
        "step_d_s": 1e-4, "step_t0_s": 0.01,
    }  # fmt: skip
    add_capacity(engine, capacity)
    add_samples(
        engine,
        [
            FleetSample(T - 10**9, "a", "pool:a/0", "healthy", step_feedback_ppm=9),
            FleetSample(T + 10**6, "a", "pool:a/0", "healthy", step_feedback_ppm=1_200_000),
        ],
    )
    for at_us, rtt_us in ((T - 10**10, 9), (T - 10**9, 300), (T + 10**10, 7)):
        add_round_trips(engine, at_us, {"pool:a/0": rtt_us, "pool:a/1": 1})
    return name


def test_every_try_of_a_request_is_told_with_what_was_known_then(engine, request_id):
    with engine.connect() as connection:
        api, own = waterfall(connection, request_id)
        assert waterfall(connection, "req_gone") == []
        assert round_trips(connection) == {"pool:a/0": 7, "pool:a/1": 1}
    assert [(span.what, span.length_us) for span in api.spans] == [
        ("gateway", 2_000),
        ("answer", 50_000),
    ]
    assert [(span.what, span.start_us, span.length_us) for span in own.spans] == [
        ("gateway", 52_000, 2_000),
        ("network", 54_000, 300),
        ("queue", 54_300, 15_700),
        ("prefill", 70_000, 84_000),  # 1.2 x (10 ms + 600 uncached tokens of 0.1 ms)
        ("decode", 154_000, 246_000),
    ]


def test_as_text_bars_begin_where_the_span_before_ends(engine, request_id):
    with engine.connect() as connection:
        found = lines(waterfall(connection, request_id))
    assert found[0] == "openai/x: failed"
    assert found[3] == "pool:a/0: ok"
    assert found[-1].split("|")[0].strip() == "decode"
    assert found[-1].split("|")[1] == " " * 15 + "#" * 25
    assert found[-1].endswith("246.0 ms  measured")
