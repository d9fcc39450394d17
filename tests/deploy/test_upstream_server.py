"""A subclass is asked while its server is entered, and the port is free afterwards."""

import socket
from typing import Any

import httpx
import pytest

from deploy.upstream_server import UpstreamServer


class Echo(UpstreamServer):
    async def __call__(self, scope: dict[str, Any], _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})


def test_it_answers_until_its_end() -> None:
    with Echo() as server:
        address = f"http://127.0.0.1:{server.port}"
        assert httpx.get(f"{address}/a").text == "/a"
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)
    socket.create_server(("127.0.0.1", server.port)).close()
