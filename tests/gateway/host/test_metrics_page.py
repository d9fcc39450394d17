"""A metrics page is read whole, and one that is too large is refused while it comes."""

from collections.abc import AsyncIterator

import httpx
import pytest

from backends.metrics import ProbeFailed
from gateway.host import metrics_page


class Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: int) -> None:
        self.pieces, self.sent = pieces, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.sent < self.pieces:
            self.sent += 1
            yield b"x" * 1024


async def read(pieces: Pieces) -> str:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=pieces))
    async with httpx.AsyncClient(transport=transport) as client:
        return (await metrics_page.read_page(client, "http://engine/metrics"))[1]


async def test_a_page_is_read_whole() -> None:
    assert await read(Pieces(3)) == "x" * 3072


async def test_a_page_without_an_end_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(metrics_page, "PAGE_BYTES", 4096)
    pieces = Pieces(1_000_000)
    with pytest.raises(ProbeFailed, match="larger than 4,096 bytes"):
        await read(pieces)
    assert pieces.sent < 100
