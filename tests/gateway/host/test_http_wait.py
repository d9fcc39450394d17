"""Waiting for what was started: gateway ready, dashboard up, and an end to the patience."""

import asyncio

import pytest

from gateway.config.settings import parse
from gateway.host import http_wait
from gateway.host.http_wait import wait_until_answering


class Page:
    """Answers each path with 503 until it was asked `refusals` times, then with 200."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.asked: list[str] = []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader, writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split()[1].decode())
        status = "503 No" if len(self.asked) <= self.refusals else "200 OK"
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def settings(dashboard_port: int | None):
    shown = {"enabled": dashboard_port is not None, "port": dashboard_port or 1}
    return parse(f"dashboard: {shown}".replace("True", "true").replace("False", "false"), name="x")


async def test_it_waits_until_both_answer_well():
    async with Page(refusals=3) as gateway, Page(refusals=1) as dashboard:
        await wait_until_answering(settings(dashboard.port), ("127.0.0.1", gateway.port))
        assert gateway.asked == ["/readyz"] * 4
        assert dashboard.asked == ["/_stcore/health"] * 2


async def test_a_dashboard_that_is_off_is_not_waited_for():
    async with Page(refusals=0) as gateway:
        await wait_until_answering(settings(None), ("127.0.0.1", gateway.port))
        assert gateway.asked == ["/readyz"]


async def test_patience_ends(free_port, monkeypatch):
    """Nobody listens there."""
    monkeypatch.setattr(http_wait, "ANSWER_LIMIT_S", 0.3)
    said = rf"http://127\.0\.0\.1:{free_port}/readyz did not answer within 0 s: .*logs says why"
    with pytest.raises(TimeoutError, match=said):
        await wait_until_answering(settings(None), ("127.0.0.1", free_port))
