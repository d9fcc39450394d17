"""Bodies of small requests: bounded, and objects."""

import asyncio

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect

from gateway.errors import RequestError
from gateway.stored.json_body import BodyLimits, read_json_object

LIMITS = BodyLimits(20, 0.05)


def request_of(*parts: bytes | None, media: str = "application/json") -> Request:
    """A request whose body comes in these parts; None: nothing more comes."""
    waiting = list(parts)

    async def receive():
        if not waiting:
            return {"type": "http.disconnect"}
        part = waiting.pop(0)
        if part is None:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    headers = [(b"content-type", media.encode())]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


async def test_an_object_in_any_number_of_parts() -> None:
    assert await read_json_object(request_of(b'{"a":', b"1}"), LIMITS) == {"a": 1}
    assert await read_json_object(request_of(b" ", media="text/plain"), LIMITS) == {}


@pytest.mark.parametrize(
    ("parts", "media", "kind"),
    [
        ([b"[1]"], "application/json", "bad_request"),
        ([b"{"], "application/json", "bad_request"),
        ([b"\xff"], "application/json", "bad_request"),
        ([b"{}"], "text/plain", "media_type"),
        ([b"x" * 21], "application/json", "too_large"),
        ([b"{", None], "application/json", "slow_client"),
    ],
)
async def test_what_is_none(parts, media: str, kind: str) -> None:
    with pytest.raises(RequestError) as raised:
        await read_json_object(request_of(*parts, media=media), LIMITS)
    assert raised.value.kind == kind


@pytest.mark.parametrize(
    ("body", "words", "param"),
    [
        (b"[1]", "must be a JSON object", None),
        (b'{"a":NaN}', r"not valid JSON: .* \(byte 5\)", None),
        (b'{"a":"\\ud800"}', "`a` contains invalid Unicode", "a"),
        (b'{"a":"\xff"}', "`a` contains invalid Unicode", "a"),
        (b"\xef\xbb\xbf{}", r"not valid JSON: .* \(byte 0\)", None),
        (b'{"a":1,"a":2}', "`a` stands twice", "a"),
    ],
)
async def test_the_words_name_what_is_wrong(body: bytes, words: str, param: str | None) -> None:
    """Red before: most were told that they must be a JSON object."""
    with pytest.raises(RequestError, match=words) as raised:
        await read_json_object(request_of(body), LIMITS)
    assert raised.value.param == param


async def test_a_client_that_hangs_up(monkeypatch) -> None:
    request = request_of()

    async def stream():
        raise ClientDisconnect
        yield b""

    monkeypatch.setattr(request, "stream", stream)
    with pytest.raises(RequestError, match="disconnected"):
        await read_json_object(request, LIMITS)


async def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        await read_json_object(request_of(b'{"a":1,"\\u0061":2}'), LIMITS)
    assert (caught.value.kind, caught.value.param) == ("duplicate_key", "a")
