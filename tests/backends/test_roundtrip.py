"""The kernel's word on a connection: there for TCP, and nothing where there is none."""

import socket

import httpx
import pytest

from backends.roundtrip import of_socket, round_trip_s


def test_a_connection_that_carried_something_has_a_round_trip():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            for _ in range(3):
                near.sendall(b"x")
                far.sendall(far.recv(1))
                near.recv(1)
            found = of_socket(near)
    assert found is not None
    assert 0.0 < found < 1.0


@pytest.mark.parametrize("told", [b"", b"\0" * 40])
def test_a_kernel_that_tells_less_tells_nothing(told):
    class Short:
        def getsockopt(self, *_):
            return told

    assert of_socket(Short()) is None


def test_where_there_is_no_tcp_connection_nothing_is_known():
    one, two = socket.socketpair()
    with one, two:
        assert of_socket(one) is None
    assert of_socket(None) is None
    assert round_trip_s(httpx.Response(200)) is None


def test_a_real_answer_brings_its_connection():
    import asyncio  # noqa: PLC0415  (the only test that needs a loop of its own)

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        await reader.read()
        writer.close()

    async def ask():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            async with httpx.AsyncClient(trust_env=False) as client:
                found = round_trip_s(await client.get(f"http://127.0.0.1:{port}/metrics"))
            await asyncio.sleep(0.05)  # the server's side closes as well
        return found

    found = asyncio.run(ask())
    assert found is not None
    assert 0.0 < found < 1.0
