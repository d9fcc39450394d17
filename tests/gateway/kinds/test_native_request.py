"""A request as its client wrote it: what is changed in it, and that nothing else is."""

import json

import pytest

from gateway.http.body import decode_members
from gateway.kinds.native_request import NativeRequest

BODY = (
    b'{"model": "ours", "system": [{"text": "a",  "type":"text"}], "max_tokens": 50, '
    b'"metadata": {"user_id": "u"}, "new": 1.50}'
)


def body(text: bytes = BODY, *, max_tokens: int | None = None, tells: bool = False) -> bytes:
    request = NativeRequest(decode_members(text))
    return request.body_for("theirs", max_tokens=max_tokens, tells_users=tells)


def test_only_the_model_is_another() -> None:
    told = decode_members(body(tells=True))
    assert list(told) == list(decode_members(BODY))
    assert bytes(told.pop("model")) == b'"theirs"'
    assert all(b'": %b' % bytes(value) in BODY for value in told.values())


def test_a_shorter_answer_stands_where_the_limit_stood() -> None:
    names = list(json.loads(BODY))
    cut = body(max_tokens=9, tells=True)
    assert list(json.loads(cut)) == names
    assert json.loads(cut)["max_tokens"] == 9


@pytest.mark.parametrize(
    ("metadata", "told"),
    [(b'{"user_id":"u"}', None), (b'{"user_id":"u","x":1}', {"x": 1}), (b"null", None)],
)
def test_who_asks_is_told_to_whom_may_know(metadata: bytes, told: dict | None) -> None:
    text = b'{"model":"m","metadata":%b}' % metadata
    assert json.loads(body(text)).get("metadata") == told
    assert json.loads(body(text, tells=True))["metadata"] == json.loads(metadata)
