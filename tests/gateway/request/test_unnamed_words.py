"""Words that came in places without a name here are booked, where no usage says how many."""

import json
from typing import Any

import pytest
from charge_cases import api

from gateway.kinds.outcome import AttemptOutcome
from gateway.kinds.relay import ByteRelay

TEXT = "word " * 40
TOKENS = len(TEXT) // 4
GOOGLE = {"google": {"thought": TEXT, "thought_signature": "x" * 4000}}
PAGE = "page " * 800


def chunk(choice: Any) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def streamed(*events: dict[str, Any]) -> ByteRelay:
    relay = ByteRelay(hide_usage=True)
    for event in events:
        relay.feed(b"data: %b\n\n" % json.dumps(event).encode())
    return relay


def left(relay: ByteRelay) -> int:
    """The output that is booked where a client left a provider that stops with it."""
    outcome = AttemptOutcome.cut(relay, "client_gone", 499)
    found = api(
        outcome, stream=True, max_tokens=2_000, goes_on=False, on_disconnect="stops",
        events=relay.content_events,
    )  # fmt: skip
    return found.tokens.output


@pytest.mark.parametrize(
    "event",
    [
        chunk({"index": 0, "delta": {"words_of_tomorrow": TEXT}}),
        chunk({"index": 0, "delta": {"content": "", "segments": [{"text": TEXT}]}}),
        chunk({"index": 0, "delta": {"extra_content": GOOGLE}}),
        chunk({"index": 0, "delta": {}, "words_of_tomorrow": TEXT}),
        chunk({"index": 0, "delta": TEXT}),
        chunk(TEXT),
        {"choices": {"0": {"delta": {"content": TEXT}}}},
        {"data": chunk({"index": 0, "delta": {"content": TEXT}})},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
        {"type": "response.output_text.delta", "delta": TEXT},
        {"content": TEXT, "stop": False},
        {"index": 0, "token": {"id": 1, "text": TEXT}, "generated_text": None},
    ],
    ids=lambda event: json.dumps(event)[:60],
)
@pytest.mark.parametrize("begun", [False, True])
def test_words_in_any_place_are_booked(event, begun) -> None:
    """Red before: all of it reached the client, and none or one token was booked."""
    first = [chunk({"index": 0, "delta": {"content": "x"}})] * begun
    relay = streamed(*first, *[event] * 10)
    assert 10 * TOKENS <= left(relay) <= 11 * TOKENS


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ping"},
        {"choices": [], "prompt_filter_results": [{"content_filter_results": {"a": PAGE}}]},
        chunk({"index": 0, "delta": {"content": "", "context": {"citations": [PAGE]}}}),
        chunk({"index": 0, "delta": {"annotations": [{"url_citation": {"content": PAGE}}]}}),
        chunk({"index": 0, "delta": {"extra_content": {"google": {"thought_signature": PAGE}}}}),
        chunk({"index": 0, "delta": {}, "content_filter_results": {"hate": {"severity": PAGE}}}),
    ],
    ids=lambda event: json.dumps(event)[:60],
)
def test_what_is_quoted_sealed_or_said_of_the_answer_is_not(event) -> None:
    said = chunk({"index": 0, "delta": {"content": "four tokens said"}})
    assert left(streamed(event, said)) == 4


@pytest.mark.parametrize(
    "answer",
    [
        {"data": {"choices": [{"message": {"content": TEXT}}]}},
        {"data": [{"text": TEXT}]},
        {"choices": [TEXT]},
        {"choices": {"0": {"message": {"content": TEXT}}}},
        {"choices": [{"message": {"role": "assistant", "words_of_tomorrow": TEXT}}]},
    ],
    ids=lambda answer: json.dumps(answer)[:60],
)
def test_so_are_those_of_an_answer_in_one_piece(answer) -> None:
    """Red before: one token."""
    outcome = AttemptOutcome("finished", 200, answer=json.dumps(answer).encode())
    assert TOKENS <= api(outcome, max_tokens=2_000).tokens.output <= TOKENS + 10


@pytest.mark.parametrize(
    "event",
    [
        chunk({"index": 0, "delta": {"content": "x", "words_of_tomorrow": TEXT}}),
        chunk({"index": 0, "delta": {"content": "x"}, "words_of_tomorrow": TEXT}),
        chunk({"index": 0, "delta": {"content": "x"}}) | {"words_of_tomorrow": TEXT},
        chunk({"index": 0, "delta": {"content": "x", "role": "a" * 256}}) | {"object": TEXT},
        chunk({"index": 0, "delta": {"reasoning": "x", "extra_content": GOOGLE}}),
        chunk({"index": 0, "text": "x", "segments": [{"text": TEXT}]}),
        chunk({"index": 0, "delta": {"content": [{"type": "text", "text": "x"}, {"said": TEXT}]}}),
        chunk({"index": 0, "delta": {"tool_calls": [{"function": {"arguments": "x"}, "a": TEXT}]}}),
    ],
    ids=lambda event: json.dumps(event)[:60],
)
@pytest.mark.parametrize("alike", [False, True])
def test_words_beside_a_known_one_are_booked(event, alike) -> None:
    """Red before: one token an event, whatever stood beside it, below 2,048 bytes."""
    plain = chunk({"index": 0, "delta": {"content": "word "}})
    relay = streamed(*[plain] * 3 * alike, *[event, plain] * 10)
    assert 10 * TOKENS <= left(relay) <= 12 * TOKENS
    if "delta" in event["choices"][0]:
        choice = {"index": 0, "message": event["choices"][0]["delta"]}
        answer = {**event, "choices": [event["choices"][0] | choice]}
        outcome = AttemptOutcome("finished", 200, answer=json.dumps(answer).encode())
        assert TOKENS <= api(outcome, max_tokens=2_000).tokens.output <= TOKENS + 10


def test_a_start_that_counts_nothing_is_no_figure_of_words_without_a_name() -> None:
    """Red before: 0 tokens, of Messages' next kind of change."""
    started = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}
    relay = streamed(
        chunk({"index": 0, "delta": {"role": "assistant"}}) | {"usage": started},
        *[chunk({"index": 0, "delta": {"unnamed": {"type": "a_delta", "said": TEXT}}})] * 10,
    )
    assert left(relay) == 10 * TOKENS
