"""How long what an answer says is: every text of the model, and nothing that is only form."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.chunks import read_chunk
from backends.text_length import (
    ENCODED_FROM,
    answer_content_bytes,
    answer_said_bytes,
    call_bytes,
    certain_bytes,
    choice_bytes,
    content_bytes,
    decode_answer,
    part_bytes,
    said_of_encoded,
    text_bytes,
)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("abc", 3),
        ("\u00e4\u20ac", 5),
        (None, 0),
        (7, 0),
        ([{"type": "text", "text": "four"}], 4),
        ({"role": "assistant", "id": "x", "content": "ab", "refusal": None}, 2),
        ([{"id": "call", "function": {"name": "look", "arguments": '{"a":1}'}}], 11),
        ({"audio": {"id": "a", "data": "AAAA", "transcript": "hey"}}, 3),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}], 0),
        ("![a](data:image/png;base64," + "AAAA" * 999 + ") is it", 26),
        ("not;base64," + "AAAA" * 999, 11 + 4 * 999),
    ],
)
def test_texts_count_and_form_does_not(value, size):
    assert content_bytes(value) == size
    assert said_of_encoded(msgspec.json.encode(value), part_bytes).most == size


def test_nesting_is_no_limit():
    value = "x"
    for _ in range(50_000):
        value = [value]
    assert content_bytes(value) == 1


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (b'{"id":"long","choices":[{"message":{"content":"abc"}},{"text":"de"}]}', 5),
        (b'{"data":[{"embedding":"AAAA"}],"model":"m"}', 0),
        (b"[1]", 3),
        (b"no json", 7),
    ],
)
def test_of_a_whole_answer_its_choices_count(body, size):
    assert answer_content_bytes(body) == size


@pytest.mark.parametrize(
    ("delta", "size"),
    [
        ({"content": "abc", "role": "assistant"}, 3),
        ({"reasoning": "abcd", "reasoning_content": "abcd"}, 4),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, 2),
        ({"content": [{"type": "text", "text": "parts"}]}, 5),
        ({}, 0),
    ],
)
def test_of_a_chunk_its_delta_counts(delta, size):
    chunk = read_chunk(msgspec.json.encode({"choices": [{"index": 0, "delta": delta}]}))
    assert [choice.said() for choice in chunk.choices] == [(size, size)]


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (0, 26),  # too short to be looked through
        (ENCODED_FROM - 26, ENCODED_FROM),
        (ENCODED_FROM - 25, ENCODED_FROM - 25 + 14),
    ],
)
def test_an_encoded_picture_in_a_long_text_is_none_of_it(before, size):
    assert text_bytes("a" * before + "data:image/png" + ";base64,AAAA") == size


PAGE = "word " * 2000
SIGNED = "A" * 9000
# What providers quote, sign or ran in an answer: no token of it is the model's for certain.
QUOTED = {
    "openrouter's pages": {"annotations": [{"type": "url_citation",
                                            "url_citation": {"content": PAGE}}]},
    "openrouter's parsed file": {"annotations": [{"type": "file", "file": {"content": [
        {"type": "text", "text": PAGE}]}}]},
    "azure's data": {"context": {"citations": [{"content": PAGE, "title": "t"}], "intent": "x"}},
    "groq's tools": {"executed_tools": [{"index": 0, "arguments": "{}", "output": PAGE}]},
    "a member of tomorrow": {"retrieved": [{"passage": PAGE}]},
    "claude's signature": {"thinking_blocks": [{"type": "thinking", "thinking": "",
                                                "signature": SIGNED}]},
    "claude's redaction": {"thinking_blocks": [{"type": "redacted_thinking", "data": SIGNED}]},
    "gemini's signature": {"extra_content": {"google": {"thought_signature": SIGNED}}},
    "an encrypted thought": {"reasoning_details": [{"type": "reasoning.encrypted",
                                                    "data": SIGNED}]},
    "a signature of thoughts": {"reasoning_signature": SIGNED},
    "litellm's": {"provider_specific_fields": {"citations": [[{"cited_text": PAGE}]]}},
    "a search as a part": {"content": [{"type": "text", "text": "said"},
                                       {"type": "web_search_tool_result", "content": [
                                           {"type": "web_search_result", "text": PAGE}]}]},
    "a tool's result": {"tool_calls": [{"type": "web_search", "web_search": {"output": PAGE}}]},
}  # fmt: skip


@pytest.mark.parametrize("name", QUOTED)
def test_what_is_quoted_in_an_answer_is_not_said_for_certain(name: str) -> None:
    message = {"role": "assistant", "content": "said", **QUOTED[name]}
    body = msgspec.json.encode({"choices": [{"index": 0, "message": message}]})
    found = answer_said_bytes(body)
    assert (found.least, answer_content_bytes(body)) == (4, 4)
    assert found.most >= 4
    assert choice_bytes({"delta": message}) == 4


@pytest.mark.parametrize("member", ["citations", "content_filter_results", "x"])
def test_what_stands_beside_a_message_is_not_said_for_certain(member: str) -> None:
    choice = {"message": {"content": "said"}, member: [{"detail": PAGE}]}
    found = answer_said_bytes(msgspec.json.encode({"choices": [choice]}))
    assert found == (4, 4 + len(PAGE))


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ({"content": "ab", "refusal": "c", "audio": {"id": "x", "transcript": "de"}}, 5),
        ({"content": [{"type": "output_text", "text": "ab"}, {"text": "c"}, "d"]}, 4),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "abc"}]}]}, 3),
        ({"reasoning": "abc", "reasoning_content": "abc",
          "reasoning_details": [{"type": "reasoning.text", "text": "abc"}]}, 3),
        ({"reasoning": "abc", "content": "d"}, 4),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "abc"}]}, 3),
        ({"tool_calls": [{"id": "i", "type": "function",
                          "function": {"name": "ab", "arguments": "{}"}}]}, 4),
        ({"tool_calls": [{"type": "custom", "custom": {"name": "ab", "input": "c"}}]}, 3),
        ({"tool_calls": [{"function": {"name": "a", "arguments": {"b": "cd"}}}]}, 3),
        ({"function_call": {"name": "ab", "arguments": "{}"}}, 4),
        ({"audio_transcript": "abc"}, 3),
        ({"content": 7, "tool_calls": "x", "audio": None}, 0),
    ],
)  # fmt: skip
def test_what_a_model_surely_wrote_is_certain(message: dict, size: int) -> None:
    assert certain_bytes(message) == size


def test_calls_have_names_and_arguments() -> None:
    assert call_bytes([{"function": {"name": "a", "arguments": '{"b":1}', "output": PAGE}}]) == 8


def test_half_a_character_does_not_make_an_answer_unreadable() -> None:
    body = rb'{"choices":[{"message":{"content":"a\ud83d","annotations":["quoted"]}}]}'
    assert answer_said_bytes(body) == (4, 10)
    assert decode_answer(b"no json") is None


@given(
    st.lists(
        st.text(max_size=6) | st.dictionaries(st.text(max_size=3), st.text(max_size=3)), max_size=3
    )
)
def test_what_is_cut_off_may_be_said_from_end_to_end(said) -> None:
    raw = msgspec.json.encode(said)
    least, most = said_of_encoded(raw, part_bytes)
    assert 0 <= least <= most <= len(raw)
    for end in range(len(raw)):
        assert said_of_encoded(raw[:end], part_bytes) == (0, end)
