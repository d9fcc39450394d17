"""A listening socket is bound at once, or when the one who has the port ends."""

import asyncio
import os
import socket
import threading

import pytest

from gateway.config.settings import parse
from gateway.errors import ConfigError
from gateway.host import listening as sockets
from gateway.host.listening import open_server_socket


def listens(port: int):
    settings = parse(f"server: {{port: {port}}}\n{MODEL}", name="test")
    said: list[str] = []
    return open_server_socket(settings, said.append), said


MODEL = """
models: {m: {targets: [standin/m]}}
providers: {standin: {start: true, simulated: true, prices_as: openai/gpt-4o-mini}}
"""


def test_a_port_that_stays_taken_is_one_line(monkeypatch) -> None:
    monkeypatch.setattr(sockets, "LISTEN_PATIENCE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        work, said = listens(port)
        with pytest.raises(ConfigError) as caught:
            asyncio.run(work)
    assert str(caught.value).startswith(
        f"server.port: cannot listen on 127.0.0.1:{port}: it is taken by process {os.getpid()} ("
    )
    assert str(caught.value).endswith(": end it, or set another port (`make run PORT=9000`)")
    assert len(said) == 1


def test_a_port_that_comes_free_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        work, said = listens(taken.getsockname()[1])
        threading.Timer(0.5, taken.close).start()
        asyncio.run(work).close()
    assert "waiting" in said[0]


def test_an_address_that_is_not_ours_is_not_waited_for() -> None:
    settings = parse(f"server: {{host: 192.0.2.1, port: 1}}\n{MODEL}", name="test")
    with pytest.raises(ConfigError, match=r"server\.host, server\.port: cannot listen on 192"):
        asyncio.run(open_server_socket(settings, str))
