"""Nothing sent is nothing owed: a socket that keeps what arrives, and each kind of failure."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from backends.base import Call, Deadlines
from backends.errors import BackendError, RequestUnsendable, UpstreamUnreachable
from backends.exchange import read_all
from backends.http import HttpClient, PoolLimits
from backends.openai import Credentials, OpenAIBackend
from backends.origin import Origin
from backends.secret import Secret
from backends.sending import Transmission

REQUEST = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
LONG, SHORT = Deadlines(9, 9, 9), Deadlines(connect_s=0.2, head_s=0.2, idle_s=0.2)


class CountingServer:
    """Keeps every byte that arrives; answers the first request if it is told to."""

    def __init__(self) -> None:
        self.received = b""
        self.closes = self.answers = False
        self._came = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self, **options: object) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, **options)
        return self._server.sockets[0].getsockname()[1]

    async def until_asked(self) -> None:
        async with asyncio.timeout(30):
            await self._came.wait()

    def stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    def stop(self) -> None:
        self.stop_listening()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        while data := await reader.read(65536):
            self.received += data
            self._came.set()
            if self.closes:
                break
            if self.answers:
                self.answers, self.closes, self.received = False, True, b""
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()


@pytest.fixture
async def server():
    made = CountingServer()
    yield made
    made.stop()
    await asyncio.sleep(0.005)  # transports close in a later turn of the loop


def secured(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def never(*_: object) -> None:
    await asyncio.Event().wait()


async def unknown_name(*_: object) -> list[str]:
    raise socket.gaierror("no such name")


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("closes", [False, True])
async def test_what_arrived_may_be_charged(server, certificate, tls, closes) -> None:
    server.closes = closes
    port = await server.start(**({"ssl": secured(certificate)} if tls else {}))
    client = HttpClient(tls=ssl.create_default_context(cafile=certificate))
    origin, transmission = Origin("https" if tls else "http", "localhost", port), Transmission()
    with pytest.raises(BackendError) as caught:
        await client.open(origin, REQUEST, Deadlines(9, 0.2, 9), transmission)
    await client.aclose()
    assert server.received == REQUEST
    assert (transmission.begun, caught.value.billable) == (True, True)


UNSENT = {
    "refused": {},
    "unknown name": {"host": "no-such-name.test"},
    "address not allowed": {"host": "169.254.169.254"},
    "no TLS there": {"scheme": "https"},
    "wrong certificate": {"scheme": "https", "host": "localhost"},
    "connect timeout": {},
}


@pytest.mark.parametrize("failure", UNSENT)
async def test_what_failed_before_a_byte_left_is_free(
    server, certificate, free_port, monkeypatch, failure
) -> None:
    tls = {"ssl": secured(certificate)} if failure == "wrong certificate" else {}
    port = free_port if failure == "refused" else await server.start(**tls)
    if failure == "unknown name":
        monkeypatch.setattr("backends.http.resolve_addresses", unknown_name)
    if failure == "connect timeout":
        monkeypatch.setattr("backends.http._Pool._reach", never)
    client, transmission = HttpClient(), Transmission()
    origin = Origin(**{"scheme": "http", "host": "127.0.0.1", "port": port, **UNSENT[failure]})
    with pytest.raises(UpstreamUnreachable) as caught:
        await client.open(origin, REQUEST, SHORT if failure == "connect timeout" else LONG,
                          transmission)  # fmt: skip
    await client.aclose()
    assert b"POST" not in server.received  # of TLS, its greeting may have come
    assert (transmission.begun, caught.value.billable) == (False, False)


@pytest.mark.parametrize("failure", ["pool timeout", "pool full", "closing", "cancelled"])
async def test_who_waits_for_a_connection_has_sent_nothing(server, failure) -> None:
    port = await server.start()
    client = HttpClient(PoolLimits(connections=1, waiters=0 if failure == "pool full" else 1))
    origin, transmission = Origin("http", "127.0.0.1", port), Transmission()
    first = asyncio.create_task(client.open(origin, REQUEST, LONG))
    await server.until_asked()
    deadlines = SHORT if failure == "pool timeout" else LONG
    second = asyncio.create_task(client.open(origin, REQUEST, deadlines, transmission))
    await asyncio.sleep(0)
    if failure == "closing":
        await client.aclose()
    if failure == "cancelled":
        second.cancel()
    with pytest.raises((BackendError, asyncio.CancelledError)) as caught:
        await second
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await client.aclose()
    assert server.received == REQUEST, "that of the first"
    assert transmission.begun is False
    assert failure == "cancelled" or not caught.value.billable


async def test_what_a_kept_connection_took_before_it_died_had_left(server) -> None:
    """The next connection is refused, and nobody knows what became of the first request."""
    server.answers = True
    port = await server.start()
    client, origin = HttpClient(), Origin("http", "127.0.0.1", port)
    await read_all(await client.open(origin, REQUEST, LONG), 100)
    server.stop_listening()
    with pytest.raises(UpstreamUnreachable) as caught:
        await client.open(origin, REQUEST, LONG)
    await client.aclose()
    assert server.received == REQUEST
    assert caught.value.billable


@pytest.mark.parametrize(
    ("path", "key", "content_type"),
    [("/a b", "k", None), ("/x", "a\r\nb", None), ("/x", "k", "text/plain\r\nx: y")],
)
async def test_a_request_that_cannot_be_made_is_free(server, path, key, content_type) -> None:
    port, client = await server.start(), HttpClient()
    backend = OpenAIBackend(f"http://127.0.0.1:{port}/v1", Credentials(Secret(key)), client=client)
    call = Call(path, b"{}", stream=False, content_type=content_type)
    with pytest.raises(RequestUnsendable) as caught:
        await backend.open(call)
    await client.aclose()
    assert server.received == b""
    assert (call.transmission.begun, caught.value.billable) == (False, False)


async def test_a_call_that_is_given_up_says_whether_it_had_left(server) -> None:
    port, client = await server.start(), HttpClient()
    call = Call("/x", b"{}", stream=False)
    backend = OpenAIBackend(f"http://127.0.0.1:{port}/v1", client=client)
    task = asyncio.create_task(backend.open(call))
    await server.until_asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await client.aclose()
    assert call.transmission.begun is True
