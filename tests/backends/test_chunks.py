import json

import pytest

from backends.chunks import (
    parse_answer,
    printable_text,
    read_chunk,
    tells_error,
)
from backends.errors import (
    InvalidResponse,
    RequestDeclined,
    StreamError,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamRejected,
)
from backends.usage_bytes import UNREADABLE_USAGE


@pytest.mark.parametrize(
    "payload",
    [b"", b"1", b"[]", b"null", b'"x"', b"{", b'{"choices":[{"delta":{"content":"\xff"}}]}',
     b'{"choices":' + b"[" * 250_000 + b"]" * 250_000 + b"}"],
)  # fmt: skip
def test_what_is_no_chunk(payload):
    assert read_chunk(payload) is None


@pytest.mark.parametrize(
    ("usage", "raw"),
    [(b'{"prompt_tokens":1}', b'{"prompt_tokens":1}'), (b"null", None), (b"{}", None),
     (b"[]", None), (b"false", None), (b"0", None), (b'"many"', b'"many"'), (b"[1]", b"[1]"),
     (b"7", b"7")],
)  # fmt: skip
def test_usage_is_what_stands_there_or_nothing(usage, raw):
    assert read_chunk(b'{"choices":[],"usage":' + usage + b"}").usage_bytes() == raw


RAW_USAGE = b'{"prompt_tokens":1}'


def test_usage_of_a_whole_answer_stands_in_its_choice_or_beside():
    inside = b'{"choices":[{"usage":null},{"usage":%b}]}' % RAW_USAGE
    beside = b'{"choices":[{}],"x_groq":{"usage":%b}}' % RAW_USAGE
    own = b'{"choices":[{"usage":{"a":1}}],"usage":%b,"x_groq":{"usage":{"a":1}}}' % RAW_USAGE
    for body in (inside, beside, own):
        assert parse_answer(body).usage == {"prompt_tokens": 1}
    assert parse_answer(b'{"choices":[{}],"x_groq":{"id":"r"}}').usage is None


def test_odd_types_take_the_slow_way():
    chunk = read_chunk(
        b'{"choices":[{"index":"0","finish_reason":7,"delta":5},3],"usage":{"a":1},"error":null}'
    )
    assert (chunk.choices[0].index, chunk.choices[0].finish_reason) == (0, "7")
    assert (chunk.usage_bytes(), chunk.error_bytes()) == (b'{"a":1}', None)


@pytest.mark.parametrize(
    ("body", "usage", "finish"),
    [
        (b'{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}',
         {"prompt_tokens": 1}, "stop"),
        (b'{"object":"list","data":[],"usage":{"prompt_tokens":4}}', {"prompt_tokens": 4}, None),
        (b'{"choices":[{}],"usage":"lots"}', UNREADABLE_USAGE, None),
        (b'{"choices":{"a":1},"usage":"lots"}', UNREADABLE_USAGE, None),
        (b'{"choices":{"a":1},"usage":{"a":1}}', {"a": 1}, None),
    ],
)  # fmt: skip
def test_whole_answers(body, usage, finish):
    assert parse_answer(body) == (usage, finish, None)


@pytest.mark.parametrize(
    ("member", "tier"),
    [(b'"flex"', "flex"), (b"null", None), (b"7", None), (b'{"a":1}', None)],
)
def test_the_service_tier_is_read_where_it_is_a_word(member, tier):
    body = b'{"choices":[{}],"usage":{"a":1},"service_tier":' + member + b"}"
    assert parse_answer(body) == ({"a": 1}, None, tier)
    chunk = read_chunk(body)
    assert (chunk.service_tier, chunk.usage_bytes()) == (tier, b'{"a":1}')


@pytest.mark.parametrize(
    "rest", [',"choices":[{}]', ',"choices":{"a":1},"usage":{"prompt_tokens":3}']
)
def test_an_error_in_an_answer_is_no_answer(rest):
    for code, kind in (("overloaded", UpstreamOverloaded), ("boom", StreamError)):
        body = f'{{"error":{{"message":"prompt quoted","code":"{code}"}}{rest}}}'
        with pytest.raises(kind, match=rf"reported an error \({code}\)$"):
            parse_answer(body.encode())
    for empty in ("null", "{}", '""'):
        parse_answer(('{"error":' + empty + rest + "}").encode())


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (None, None),
        ("stop", "stop"),
        ("a\0b\r\nc\x7f", "a?b??c?"),
        ("x" * 70_000, "x" * 64),
    ],
)
def test_a_targets_words_are_bounded_and_printable(said, kept):
    assert printable_text(said) == kept
    body = json.dumps({"choices": [{"finish_reason": said}], "service_tier": said}).encode()
    assert parse_answer(body) == (None, kept, kept)
    odd = json.dumps({"choices": {"a": 1}, "service_tier": said}).encode()
    assert parse_answer(odd) == (None, None, kept)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html></html>", b"[1]", b"{", b"\xff\xfe", b'"text"', b"{}", b'{"usage":{}}',
        b'{"choices":null}', b'{"usage":"lots"}', b'{"choices":[{"message":{"content":"\xff"}}]}',
    ],
)  # fmt: skip
def test_answers_that_are_none(body):
    with pytest.raises(InvalidResponse):
        parse_answer(body)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"a\uDE00b", "a\ufffdb"),
        (rb"\ud83d\ude00\ud83d", "\U0001f600\ufffd"),
        (rb"\\ud83d\ud83d", "\\ud83d\ufffd"),
    ],
)
def test_half_a_character_does_not_break_an_answer(text, read):
    """Servers that count in UTF-16 cut a character over two chunks; their clients join it."""
    said = b'{"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":"stop"}]}' % text
    assert read_chunk(said).choices[0].delta.content == read
    assert parse_answer(said).finish_reason == "stop"
    for broken in (said[:-1], said.replace(b'"stop"', b"\xff")):
        assert read_chunk(broken) is None
        with pytest.raises(InvalidResponse):
            parse_answer(broken)


@pytest.mark.parametrize(
    ("event", "payload", "is_error"),
    [
        (b"event: error\n", b'{"message":"full"}', True),
        (b"", b'{"object":"error","message":"full"}', True),
        (b"", b'{"type":"error"}', True),
        (b"", b'{"message":"full"}', False),
        (b"event: ping\n", b"{}", False),
    ],
)
def test_an_event_tells_an_error_by_its_name_or_its_kind(event, payload, is_error):
    assert tells_error(event + b"data: " + payload, payload) is is_error


FAILED = {"index": 0, "error": {"code": 502, "message": "idle timeout"}, "finish_reason": "error"}
USAGE = {"prompt_tokens": 20, "completion_tokens": 0, "total_tokens": 20}


def chosen(*choices: dict, **more: object) -> bytes:
    return json.dumps({"id": "c", "choices": list(choices), **more}).encode()


def with_error(error: object) -> dict:
    return {"index": 0, "message": {"role": "assistant", "content": ""}, "error": error}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (chosen(FAILED, usage=USAGE), StreamError, 502),
        (chosen({"finish_reason": "error", "message": {"content": ""}}), StreamError, None),
        (chosen(with_error({"code": 429})), UpstreamOverloaded, 429),
        (chosen(with_error({"type": "overloaded_error"})), UpstreamOverloaded, 503),
        (chosen(with_error("rate limit exceeded")), UpstreamOverloaded, 429),
        (chosen(with_error({"code": "content_filter"})), RequestDeclined, 400),
        (chosen(with_error({"code": "insufficient_quota"})), UpstreamRejected, 402),
        (chosen(FAILED, FAILED), StreamError, 502),
        (chosen(usage=USAGE), StreamError, None),
        (chosen(error={"code": "503"}), UpstreamOverloaded, 503),
        (b'{"choices":{},"usage":{"a":1}}', StreamError, None),
        (b'[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]', UpstreamOverloaded, 429),
        (b'{"object":"error","code":503,"message":"no"}', UpstreamOverloaded, 503),
    ],
)
def test_an_error_is_judged_by_what_it_says_wherever_it_stands(body, kind, status):
    with pytest.raises(kind) as raised:
        parse_answer(body)
    assert (raised.value.status, raised.value.billable) == (status, False)


@pytest.mark.parametrize(
    "choices",
    [
        ({"finish_reason": "stop", "error": None},),
        ({"finish_reason": "stop", "error": {}},),
        (FAILED, {"finish_reason": "stop", "message": {"content": "so"}}),
    ],
)
def test_an_answer_beside_an_error_is_an_answer(choices):
    assert parse_answer(chosen(*choices, usage=USAGE)).usage == USAGE


@pytest.mark.parametrize(
    ("usage", "content", "kept"),
    [
        ({**USAGE, "completion_tokens": 7}, "", True),
        ({**USAGE, "completion_tokens": 7}, "half of", True),
        (USAGE, "half of", False),
    ],
)
def test_what_was_made_before_a_failure_is_charged(usage, content, kept):
    body = chosen({**FAILED, "message": {"content": content}}, usage=usage)
    with pytest.raises(UpstreamBroken) as raised:
        parse_answer(body)
    assert raised.value.billable
    assert raised.value.usage == (usage if kept else None)


@pytest.mark.parametrize("choices", [b"null", b"[]"])
def test_no_choices_and_no_output_counted_is_an_answer_of_nothing(choices: bytes) -> None:
    """Servers in Go write an empty list as null. Red before: null was booked at the hold."""
    body = b'{"choices":%b,"usage":{"prompt_tokens":9,"completion_tokens":%b}}'
    with pytest.raises(StreamError) as failed:
        parse_answer(body % (choices, b"0"))
    assert not failed.value.billable
    with pytest.raises((UpstreamBroken, InvalidResponse)) as charged:
        parse_answer(body % (choices, b"5"))
    assert charged.value.billable
    assert charged.value.usage == {"prompt_tokens": 9, "completion_tokens": 5}


@pytest.mark.parametrize("usage", [b"null", b"{}", b'{"prompt_tokens":9}'])
def test_null_choices_without_a_count_of_output_cannot_be_read(usage: bytes) -> None:
    with pytest.raises(InvalidResponse):
        parse_answer(b'{"choices":null,"usage":%b}' % usage)


@pytest.mark.parametrize("data", [b"null", b'""', b"{}", b"[]", b"[ ]"])
def test_an_error_beside_empty_data_is_no_answer(data: bytes) -> None:
    """As SiliconFlow's and many gateways' are. Red before: the client got it as its answer."""
    with pytest.raises(UpstreamOverloaded) as full:
        parse_answer(b'{"code":50505,"message":"Model service overloaded.","data":%b}' % data)
    assert not full.value.billable
    assert parse_answer(b'{"data":[],"usage":{"prompt_tokens":3}}').usage == {"prompt_tokens": 3}


def test_an_error_beside_usage_of_zeros_is_judged_by_what_it_says() -> None:
    """As MiniMax's is. Red before: it could not be read, and was booked at the hold."""
    with pytest.raises(UpstreamOverloaded) as full:
        parse_answer(
            b'{"choices":null,"usage":{"total_tokens":0},'
            b'"base_resp":{"status_code":1002,"status_msg":"rate limit"}}'
        )
    assert not full.value.billable
