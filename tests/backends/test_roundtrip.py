"""The kernel's word on a connection: there for TCP, and nothing where there is none."""

import asyncio
import socket
import time

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


async def test_a_server_that_takes_its_time_is_as_near_as_one_that_does_not():
    """The kernel answers; the control is the same connection in use, which waits for the answer."""

    async def serve(reader, writer):
        await asyncio.sleep(0.3)
        await reader.readline()
        writer.write(b"late\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        found = await round_trip_s(f"http://127.0.0.1:{port}/v1")
        began_s = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x\n")
        await reader.readline()
        assert time.monotonic() - began_s >= 0.3
        writer.close()
        await writer.wait_closed()
    assert found is not None
    assert 0.0 < found < 0.3


async def test_where_nobody_listens_nothing_is_known():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert await round_trip_s(f"http://127.0.0.1:{port}/v1") is None


def test_where_there_is_no_tcp_connection_nothing_is_known():
    item, two = socket.socketpair()
    with item, two:
        assert of_socket(item) is None
    assert of_socket(None) is None
