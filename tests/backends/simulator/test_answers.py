"""Bytes of answers: streams that add up to the whole, usage where it was asked for."""

import json

import pytest

from backends.simulator.answers import SimulatedAnswer, embeddings
from backends.simulator.dialect import SimulatedRules, parse

RULES = SimulatedRules(("sim",), 4000, 16)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"const": {"a": "b"}}}}


def answer(chat=True, **fields):
    base = {"messages": [{"role": "user", "content": "hi"}]} if chat else {"prompt": "hi"}
    ask = parse(json.dumps({"model": "sim", **base, **fields}).encode(), chat=chat, rules=RULES)
    return SimulatedAnswer(ask, id="1", created=7, fingerprint="fp"), ask.choices[0]


def events(raw):
    lines = [line for line in raw.decode().split("\n\n") if line]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line != "data: [DONE]"]


@pytest.mark.parametrize("chat", [True, False])
def test_pieces_add_up_to_the_whole(chat):
    made, choice = answer(chat, max_tokens=30, ignore_eos=True)
    raw = made.opening_event(choice) + b"".join(
        made.tokens(choice, i, i + 3) for i in range(0, 30, 3)
    )
    found = events(raw)
    pieces = [e["choices"][0] for e in found]
    text = "".join(p["delta"].get("content", "") if chat else p["text"] for p in pieces)
    whole = json.loads(made.whole_body(0))["choices"][0]
    assert text == (whole["message"]["content"] if chat else whole["text"])
    assert [p["finish_reason"] for p in pieces][-1] == "length"
    assert all(p["finish_reason"] is None for p in pieces[:-1])
    assert all("usage" not in e for e in found)


def test_a_tool_call_streams_its_name_once():
    made, choice = answer(tools=[TOOL], tool_choice="required", max_tokens=50)
    raw = b"".join(made.tokens(choice, i, i + 1) for i in range(choice.script.tokens))
    calls = [e["choices"][0]["delta"]["tool_calls"][0] for e in events(raw)]
    assert calls[0]["function"]["name"] == "f"
    assert all("name" not in call["function"] for call in calls[1:])
    assert json.loads("".join(c["function"]["arguments"] for c in calls)) == {"a": "b"}
    message = json.loads(made.whole_body(0))["choices"][0]["message"]
    assert message["tool_calls"][0]["id"] == calls[0]["id"]


def test_continuous_usage_counts_up():
    both = {"include_usage": True, "continuous_usage_stats": True}
    made, choice = answer(stream_options=both, max_tokens=4, ignore_eos=True)
    found = events(
        made.opening_event(choice) + made.tokens(choice, 0, 3) + made.tokens(choice, 3, 4)
    )
    assert [e["usage"]["completion_tokens"] for e in found] == [0, 3, 4]
    last = events(made.closing_events(16))[0]
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 16}
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + 4


def test_the_end_mark_comes_with_or_without_usage():
    assert answer()[0].closing_events(0) == b"data: [DONE]\n\n"
    assert (
        answer(stream_options={"include_usage": True})[0].closing_events(0).endswith(b"[DONE]\n\n")
    )


def test_log_probabilities_have_their_shape():
    made, choice = answer(logprobs=True, top_logprobs=1, max_tokens=2, ignore_eos=True)
    content = events(made.tokens(choice, 0, 2))[0]["choices"][0]["logprobs"]["content"]
    assert len(content) == 2
    assert content[0]["top_logprobs"][0]["token"] == content[0]["token"]
    made, choice = answer(False, logprobs=1, max_tokens=3)
    shape = json.loads(made.whole_body(0))["choices"][0]["logprobs"]
    assert [len(values) for values in shape.values()] == [3, 3, 3, 3]


def test_embeddings_are_listed_in_order():
    body = json.loads(embeddings("sim", [[1.0], [0.5]], 9))
    assert [entry["index"] for entry in body["data"]] == [0, 1]
    assert body["usage"] == {"prompt_tokens": 9, "total_tokens": 9}
