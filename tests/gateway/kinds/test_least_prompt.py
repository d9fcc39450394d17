"""The least tokens of a prompt are those of its text, whatever else the request carries."""

import json
from typing import Any

import msgspec
import pytest

from gateway.http.body import decode_members
from gateway.kinds import least_prompt
from gateway.kinds.least_prompt import least_prompt_tokens

TEXT = "word " * 2560  # 12,800 bytes, 100 tokens at least
DATA = "data:image/png;base64," + "A" * 40_000


def least(context: int | None = None, **members: Any) -> int:
    return least_prompt_tokens(decode_members(json.dumps(members).encode()), context)


def chat(*messages: dict, context: int | None = None, **more: Any) -> int:
    return least(context, messages=list(messages), **more)


USER = {"role": "user", "content": TEXT}


def test_the_text_of_all_messages_counts() -> None:
    assert chat(USER) == 100
    assert chat(USER, {"role": "assistant", "content": TEXT}) == 200
    assert chat({"role": "user", "content": [{"type": "text", "text": TEXT}]}) == 100
    assert chat({"role": "user", "content": [{"type": "input_text", "text": TEXT}, TEXT]}) == 200
    assert chat({"role": "user", "content": "hi"}) == 1
    assert chat({"role": "user", "content": ""}) == 0


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": TEXT},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": TEXT}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": TEXT}]},
        {"content": [{"type": "thinking", "thinking": TEXT, "text": TEXT}]},
        {"content": [{"type": "image_url", "image_url": {"url": DATA}}]},
        {"content": [{"type": "photo", "photo": DATA}]},
        {"content": [{"type": "file", "file": {"file_data": DATA}}]},
        {"audio": {"id": "a"}, "tool_calls": [], "name": TEXT},
        {"content": {"a": TEXT}},
        {"content": None},
    ],
)
def test_what_a_target_may_leave_out_does_not(message: dict) -> None:
    assert chat({"role": "assistant", **message}) == 0


def test_only_the_data_of_a_picture_leave_a_text() -> None:
    """A word of the data's own form made any figure true."""
    assert chat({"role": "user", "content": TEXT + ";base64,"}) == 101
    assert chat({"role": "user", "content": f"{TEXT}![a]({DATA})"}) == 101


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        (b"[" + b" " * 50_000 + b'{"role":"user",\n\t"content":"hi"}]', 1),
        (b'[{"role":"user","content":"' + b"\\u0061" * 12_800 + b'"}]', 100),
        (b'[{"role":"user","content":"' + b"\\/" * 12_800 + b'"}]', 100),
        (b'[{"role":"user","\\u0063ontent":"' + b"a" * 12_800 + b'"}]', 100),
    ],
)
def test_the_form_of_the_json_does_not(raw: bytes, tokens: int) -> None:
    assert least_prompt_tokens({"messages": msgspec.Raw(raw)}, None) == tokens


def test_a_context_bounds_what_is_read() -> None:
    assert chat(USER, context=30) == 30
    assert least(prompt=[TEXT, TEXT]) == 200
    assert least(30, prompt=[TEXT, TEXT]) == 60
    assert least(prompt=TEXT) == 100


@pytest.mark.parametrize(
    "member",
    [
        {"transforms": ["middle-out"]}, {"truncation": "auto"}, {"truncate_prompt_tokens": 20},
        {"plugins": [{"id": "context-compression"}]}, {"context_management": {"edits": []}},
        {"prompt_truncation": "AUTO"}, {"extra": {"num_ctx": 100}},
    ],
)  # fmt: skip
def test_a_prompt_that_may_be_cut_has_one_token(member: dict) -> None:
    assert chat(USER, **member) == 1


@pytest.mark.parametrize("member", [{"metadata": {"a": "b"}}, {"user": "u"}, {"tools": [TEXT]}])
def test_other_members_change_nothing(member: dict) -> None:
    assert chat(USER, **member) == 100


def test_embeddings_and_rankings_are_cut_where_no_context_is_stated() -> None:
    """No model reads less than 64 tokens of a long text. Red before: 24 KB were one token."""
    assert least(input=TEXT) == 64
    assert least(input=[TEXT, "short"]) == 65
    assert least(input=TEXT, truncate="END") == 1
    assert least(512, input=[TEXT, TEXT]) == 200
    assert least(30, input=[TEXT, TEXT]) == 60
    assert least(512, query="q", documents=[TEXT, {"text": TEXT}]) == 101
    assert least(input=[[1, 2, 3]]) == 3


def test_each_text_of_a_score_is_read_once_at_least() -> None:
    """Red before: five pairs of texts were one token, as their target said."""
    assert least(text_1="q", text_2=[TEXT, TEXT]) == 129
    assert least(queries=["q", "r"], items=[TEXT, TEXT]) == 130
    assert least(512, data_1="q", data_2=[TEXT]) == 101
    assert least(20, text_1="q", text_2=[TEXT]) == 11, "a query has half of a context"
    assert least(512, input="a", items=[TEXT], text_2=TEXT) == 1, "a vendor's members"


def test_each_number_of_a_token_is_one() -> None:
    """Red before: 9,000 of them were booked at the nine that a target told."""
    assert least(512, input=[[1, 2, 3]]) == 3
    assert least(512, input=[1, 2, 3]) == 3
    assert least(512, input=[[7] * 600, [7, 7]]) == 514
    assert least(input=[[7] * 600, [7, 7]]) == 66
    assert least(prompt=[[1, 2], [3]]) == 3
    assert least(512, input=[]) == 0
    assert least(512, input=[[], [1]]) == 1


@pytest.mark.parametrize("enough", [1, 100, 101, 250, 10_000])
def test_no_more_is_read_than_decides(enough: int, monkeypatch) -> None:
    """A megabyte of short messages that was counted as five tokens held up the loop for 10 ms."""
    read: list[bytes] = []
    decode = least_prompt._decode
    monkeypatch.setattr(least_prompt, "_decode", lambda raw: (read.append(raw), decode(raw))[1])
    whole = {"role": "user", "content": [{"type": "text", "text": TEXT}] * 4}
    for messages in ([USER] * 4, [whole]):
        read.clear()
        members = decode_members(json.dumps({"messages": messages}).encode())
        found = least_prompt_tokens(members, None, enough)
        assert (found >= enough) is (enough <= 400)
        assert len(read) <= min(4, -(-enough // 100))


def test_numbers_of_tokens_are_not_looked_through(monkeypatch) -> None:
    """Perhaps very many: they are counted by the bytes between them."""
    monkeypatch.setattr(least_prompt, "_decode", None)
    assert least(prompt=[1234] * 9) == 9


@pytest.mark.parametrize("text", ["\x01" * 9000, "\U0001f600" * 9000, TEXT, "é" * 9000])
def test_what_is_surely_enough_is_not_decoded(text: str) -> None:
    members = decode_members(json.dumps({"messages": [{"role": "user", "content": text}]}).encode())
    whole = least_prompt_tokens(members, None)
    for enough in (1, 10, whole - 1, whole, whole + 1):
        found = least_prompt_tokens(members, None, enough)
        assert (found >= enough) is (whole >= enough)


@pytest.mark.parametrize("blanks", [" ", "\n", " \t\r\n", "\u2003"])
@pytest.mark.parametrize("name", ["messages", "prompt", "input"])
def test_rows_of_blanks_need_no_tokens(name: str, blanks: str) -> None:
    """Red before: a template trims them, and its honest 11 tokens were booked as 10,036."""
    text = f"hi{blanks * 50_000}there{blanks * 50_000}"
    said = [{"role": "user", "content": text}] if name == "messages" else text
    body = json.dumps({"model": "m", name: said}, ensure_ascii=False).encode()
    assert least_prompt_tokens(decode_members(body), 128_000, 12) == 1
