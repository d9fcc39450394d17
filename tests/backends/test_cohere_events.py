"""Cohere's events as LiteLLM reads them, however their bytes are cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.cohere_events import mend_line, without_names

CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": ""}}
END = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {}}}


def line(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode()


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (END, {"event": "message-end", "data": END}),
        (
            {"type": "tool-call-start", "index": 1, "delta": {"message": {"tool_calls": CALL}}},
            {"type": "tool-call-delta", "index": 1,
             "delta": {"tool_calls": [{"id": "t1", "name": "look", "arguments": ""}]}},
        ),
        ({"type": "tool-call-delta", "delta": {}}, {"type": "tool-call-delta", "delta": {}}),
        ({"type": "content-delta", "delta": 1}, {"type": "content-delta", "delta": 1}),
    ],
)  # fmt: skip
def test_an_event_stands_where_it_is_looked_for(told: dict, read: dict) -> None:
    assert json.loads(mend_line(line(told))) == read


def test_lines_without_data() -> None:
    assert mend_line(b"event: message-start") is mend_line(b"") is mend_line(b"\r") is None
    assert mend_line(b'{"message": "down"}') == b'{"message": "down"}'


@given(st.lists(st.integers(1, 40), max_size=12))
async def test_it_may_be_cut_anywhere(sizes: list[int]) -> None:
    stream = b"event: a\n" + line({"a": 1}) + b"\n\nevent: message-end\n" + line(END) + b"\n\n"

    async def parts():
        rest = stream
        for size in sizes:
            yield rest[:size]
            rest = rest[size:]
        yield rest

    out = b"".join([part async for part in without_names(parts())])
    assert [json.loads(text) for text in out.splitlines()] == [
        {"a": 1}, {"event": "message-end", "data": END},
    ]  # fmt: skip
