"""An upstream that does what a test's script says, byte for byte, on a real socket."""

import asyncio
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

RESET = object()  # close with RST
CLOSE = object()  # close with FIN
HANG = object()  # keep the connection open, say nothing, until the other side goes


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable]:
    """The wire is tested on both loops: they differ in how a peer's going is noticed."""
    factories = {"asyncio": asyncio.new_event_loop}
    if item.path.name.startswith("test_http"):
        factories["uvloop"] = uvloop.new_event_loop
    return factories


class Upstream:
    """Plays `script(request_number)`: a list of bytes, pauses in seconds, and endings."""

    def __init__(self) -> None:
        self.script: Callable[[int], list] = lambda number: [CLOSE]
        self.requests: list[bytes] = []
        self.connections = 0
        self.open_now = 0
        self.gone_at: list[float] = []  # when a peer was seen to leave in the middle of an answer
        self.url = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self, **options: object) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, **options)
        port = self._server.sockets[0].getsockname()[1]
        scheme = "https" if options.get("ssl") else "http"
        self.url = (
            f"{scheme}://localhost:{port}" if options.get("ssl") else f"{scheme}://127.0.0.1:{port}"
        )

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0.005)  # transports close in a later turn of the loop

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for something that this server or its peer does."""
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110  (what a peer does sets no event)
                await asyncio.sleep(0.002)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self._writers.append(writer)
        self.connections += 1
        self.open_now += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_now -= 1
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        self.requests.append(head + body)
        for step in self.script(len(self.requests)):
            if step is RESET:
                sock = writer.get_extra_info("socket")
                sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER 0: RST
                writer.transport.abort()
                return False
            if step is CLOSE:
                return False
            if step is HANG:
                if not await reader.read(1):
                    self.gone_at.append(time.monotonic())
                return False
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.sleep(step)
        return True


def respond(body: bytes = b"{}", status: str = "200 OK", headers: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}"
        f"content-length: {len(body)}\r\n\r\n".encode()
        + body
    )


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


class Wire:
    """The vocabulary of scripts, as a fixture."""

    RESET, CLOSE, HANG, STREAM_HEAD = RESET, CLOSE, HANG, STREAM_HEAD
    respond = staticmethod(respond)
    chunked = staticmethod(chunked)


@pytest.fixture
def wire() -> type[Wire]:
    return Wire


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    server = Upstream()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def tls_upstream() -> AsyncIterator[Callable[..., Awaitable[Upstream]]]:
    """Starts an upstream behind TLS with the given server context."""
    started: list[Upstream] = []

    async def start(context: object) -> Upstream:
        server = Upstream()
        await server.start(ssl=context)
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> Path:
    """A self-signed certificate for `localhost`, key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    path = folder / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", path, "-out", folder / "cert.pem", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + (folder / "cert.pem").read_bytes())
    return path
