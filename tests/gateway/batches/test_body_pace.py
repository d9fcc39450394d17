"""Bodies in pieces: a client that is silent, or drips, is ended."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from gateway.batches import body_pace
from gateway.batches.body_pace import BodyPace, read_json_body
from gateway.errors import RequestError


async def dripping(pieces: int, pause_s: float) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        await asyncio.sleep(pause_s)
        yield b"x"


def request(stream: AsyncIterator[bytes], media: str = "application/json") -> SimpleNamespace:
    return SimpleNamespace(headers={"content-type": media}, stream=lambda: stream)


@pytest.mark.parametrize("grace_s", [0.2, 30.0])
async def test_who_drips_is_ended_though_no_piece_is_late(monkeypatch, grace_s: float) -> None:
    """With the longer grace, the control, it comes to its end."""
    monkeypatch.setattr(body_pace, "GRACE_S", grace_s)
    reading = read_json_body(request(dripping(10, 0.05)), limit=99, patience_s=20.0)
    if grace_s == 30.0:
        assert await reading == b"x" * 10
        return
    with pytest.raises(RequestError) as ended:
        await reading
    assert ended.value.kind == "slow_client"


async def test_a_silent_client_is_ended() -> None:
    with pytest.raises(TimeoutError):
        await BodyPace(0.05).read_piece(dripping(1, 20.0))


@pytest.mark.parametrize(
    ("media", "limit", "kind"),
    [("text/plain", 99, "media_type"), ("application/json", 2, "too_large")],
)
async def test_what_is_not_taken_is_named(media: str, limit: int, kind: str) -> None:
    with pytest.raises(RequestError) as refused:
        await read_json_body(request(dripping(3, 0.0), media), limit=limit, patience_s=20.0)
    assert refused.value.kind == kind
