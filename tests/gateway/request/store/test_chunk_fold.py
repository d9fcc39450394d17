"""A stream of chat chunks comes to the completion that would have been sent whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.store.chunk_fold import completion_of


def stream(*chunks: dict) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(c).encode() for c in chunks) + b"data: [DONE]\n\n"


def chunk(index: int = 0, finish: str | None = None, **delta) -> dict:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m",
            "choices": [choice]}  # fmt: skip


def test_texts_thoughts_calls_and_usage() -> None:
    call = {"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": "{"}}
    more = {"index": 0, "function": {"arguments": "}"}}
    usage = {"id": "c1", "choices": [], "usage": {"total_tokens": 3}}
    found = completion_of(
        stream(
            chunk(role="assistant", content=""), chunk(reasoning_content="h"),
            chunk(reasoning_content="m"), chunk(content="a"), chunk(content="b"),
            chunk(tool_calls=[call]), chunk(tool_calls=[more]), chunk(finish="stop"), usage,
        )
    )  # fmt: skip
    assert found is not None
    assert {name: found[name] for name in ("id", "object", "created", "model", "usage")} == {
        "id": "c1", "object": "chat.completion", "created": 5, "model": "m",
        "usage": {"total_tokens": 3},
    }  # fmt: skip
    (choice,) = found["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"] == {
        "role": "assistant", "content": "ab", "refusal": None, "reasoning_content": "hm",
        "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }  # fmt: skip


@given(parts=st.lists(st.tuples(st.integers(0, 2), st.text(max_size=5)), min_size=1, max_size=12))
def test_each_choice_has_its_own_text(parts: list[tuple[int, str]]) -> None:
    found = completion_of(stream(*(chunk(index, content=text) for index, text in parts)))
    assert found is not None
    for choice in found["choices"]:
        said = "".join(text for index, text in parts if index == choice["index"])
        assert (choice["message"]["content"] or "") == said


def test_probabilities_add_up() -> None:
    likely = []
    for text in "ab":
        told = chunk(content=text)
        told["choices"][0]["logprobs"] = {"content": [{"token": text}], "refusal": None}
        likely.append(told)
    found = completion_of(stream(*likely))
    assert found is not None
    assert [item["token"] for item in found["choices"][0]["logprobs"]["content"]] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [b"", b"data: [DONE]\n\n", b"data: {}\n\n", b"data: nothing\n\n", b": hi\n\n",
     stream(chunk(content="a"), {"error": {"message": "x"}})],
)  # fmt: skip
def test_what_is_no_answer_comes_to_none(text: bytes) -> None:
    assert completion_of(text) is None


def test_strange_members_break_nothing() -> None:
    strange = [
        {"choices": 5}, {"choices": [5]}, {"choices": [{"index": "x", "delta": 5}]},
        chunk(tool_calls=[{"index": 10**9}]), chunk(tool_calls=[{"index": -1}]),
        chunk(tool_calls=5), chunk(content=5), {"choices": [{"logprobs": 5, "delta": {}}]},
    ]  # fmt: skip
    assert completion_of(stream(*strange)) is not None


@pytest.mark.parametrize("pieces", [["get_", "weather"], ["get_weather", "get_weather"],
                                    ["get", "get_weather"], ["get_weather", "", ""]])  # fmt: skip
def test_a_name_that_comes_in_pieces_is_whole(pieces: list[str]) -> None:
    calls = [{"index": 0, "id": "t1", "function": {"name": name}} for name in pieces]
    calls.append({"index": 0, "function": {"arguments": "{}"}})
    found = completion_of(stream(*(chunk(tool_calls=[call]) for call in calls)))
    assert found is not None
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": "{}"}


def test_what_else_comes_in_pieces_is_whole() -> None:
    """Red before: of each only its last piece was stored."""
    custom = {"index": 0, "id": "t", "type": "custom", "custom": {"name": "sql", "input": "sel"}}
    found = completion_of(
        stream(
            chunk(tool_calls=[custom]),
            chunk(tool_calls=[{"index": 0, "custom": {"input": "ect"}}]),
            chunk(1, function_call={"name": "f", "arguments": "{"}),
            chunk(1, function_call={"arguments": "}"}),
            chunk(2, audio={"id": "a", "transcript": "he", "data": "AA"}),
            chunk(2, audio={"transcript": "llo", "data": "BB", "expires_at": 5}),
            chunk(3, content="x", annotations=[{"n": 1}]), chunk(3, annotations=[{"n": 2}]),
        )
    )  # fmt: skip
    assert found is not None
    called, old, spoken, cited = (choice["message"] for choice in found["choices"])
    assert called["tool_calls"] == [
        {"id": "t", "type": "custom", "custom": {"name": "sql", "input": "select"}}
    ]
    assert old["function_call"] == {"name": "f", "arguments": "{}"}
    assert spoken["audio"] == {"id": "a", "transcript": "hello", "data": "AABB", "expires_at": 5}
    assert cited["annotations"] == [{"n": 1}, {"n": 2}]
