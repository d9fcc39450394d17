"""S6: what the gateway takes for a request is what the strict reader takes for one.

Each line of `corpus/http.txt` is one connection, sent whole, in two halves and byte by byte. A
difference is a request that the application got and the reader did not find in that place, another
body, or one that the reader found and that was neither passed on nor refused.
"""

import asyncio
import re
from pathlib import Path
from typing import Any

import strict
from case import Case, CaseFigures, Given

from gateway.config.schema_server import TimeoutsSection
from gateway.http import protocol
from gateway.worker.__main__ import server

CORPUS = Path(__file__).with_name("corpus") / "http.txt"
LEAST = 300
WAIT_S = 20.0
# The parser takes these protocols' names for HTTP's and does not tell; the framing is HTTP's.
KNOWN = {"line 'GET /a RTSP/1.0'", "line 'SOURCE /a ICE/1.0'"}
_ORIGIN = re.compile(rb"^[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]+")


def corpus() -> dict[str, bytes]:
    """By name, without those that are known (`KNOWN`) to be read otherwise."""
    lines = CORPUS.read_text(encoding="ascii").splitlines()
    pairs = [line.split("\t", 1) for line in lines if not line.startswith("#")]
    found = {name: text.encode().decode("unicode_escape") for name, text in pairs}
    assert set(found) >= KNOWN
    return {name: text.encode("latin-1") for name, text in found.items() if name not in KNOWN}


class Recorder:
    """An application behind the gateway's own server: requests that came whole."""

    def __init__(self) -> None:
        self.hot = type("Hot", (), {"draining": False})()
        self.origins: tuple[str, ...] = ()
        self.message_bytes = 1024
        self.got: list[strict.Request] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        self.got.append(strict.Request(scope["method"].encode(), scope["raw_path"] + query, body))
        head = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"0")],
        }
        await send(head)
        await send({"type": "http.response.body", "body": b""})


def differences(given: Given) -> CaseFigures:
    if given.broken:
        with_leniency, protocol.BoundedProtocol.on_message_begin = _lenient()
        try:
            return asyncio.run(_compared(full=False, most=3, patience_s=2.0))
        finally:
            protocol.BoundedProtocol.on_message_begin = with_leniency
    return asyncio.run(_compared(full=given.full))


def _lenient() -> tuple[Any, Any]:
    """A reader that takes what many do: bare LF, a length beside chunks, unknown codings."""
    usual = protocol.BoundedProtocol.on_message_begin
    names = (
        "headers", "chunked_length", "transfer_encoding", "optional_lf_after_cr",
        "optional_crlf_after_chunk", "spaces_after_chunk_size", "optional_cr_before_lf",
    )  # fmt: skip
    lenient = {f"lenient_{name}": True for name in names}

    def on_message_begin(self: Any) -> None:
        self.parser.set_dangerous_leniencies(**lenient)
        usual(self)

    return usual, on_message_begin


async def _compared(*, full: bool, most: int = 1000, patience_s: float = WAIT_S) -> CaseFigures:
    """Up to `most` differences: each may be a wait for an end that does not come."""
    app, cases = Recorder(), corpus()
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    listener = listening.sockets[0]
    limits = TimeoutsSection(receive_s=3600.0, keep_alive_s=3600.0, drain_s=1.0)
    http = server(app, limits)  # type: ignore[arg-type]  # as much of one as the server asks for
    http.config.lifespan = "off"
    serving = asyncio.create_task(http.serve(sockets=[listener.dup()]))
    port = listener.getsockname()[1]
    listening.close()
    try:
        while not http.started:  # noqa: ASYNC110  (uvicorn has no event for it)
            await asyncio.sleep(0.01)
        wrong: list[str] = []
        for name, stream in cases.items():
            for way, pieces in _ways(stream, full=full).items():
                if len(wrong) < most and not await _agrees(app, port, stream, pieces, patience_s):
                    wrong.append(f"{name} ({way})")
    finally:
        http.should_exit = True
        await serving
    few = () if len(cases) >= LEAST else (f"fewer than {LEAST} cases",)
    return CaseFigures(
        len(wrong), f"{len(cases)} cases{': ' * bool(wrong)}{'; '.join(wrong[:8])}", few
    )


def _ways(stream: bytes, *, full: bool) -> dict[str, list[bytes]]:
    half = len(stream) // 2
    found = {"whole": [stream]}
    if full:
        found["halves"] = [stream[:half], stream[half:]]
        found["bytes"] = [stream[place : place + 1] for place in range(len(stream))]
    return found


async def _agrees(
    app: Recorder, port: int, stream: bytes, pieces: list[bytes], patience_s: float
) -> bool:
    app.got.clear()
    wanted = strict.read(stream)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = b""
    try:
        for piece in pieces:
            if writer.transport.is_closing():
                break
            writer.write(piece)
            await asyncio.sleep(0)
        async with asyncio.timeout(patience_s):
            closed = wanted.end == "bad"  # then it must close by itself
            while closed or said.count(b"HTTP/1.1 200") < len(wanted.requests):
                part = await reader.read(65536)
                if not part:
                    closed = True
                    break
                said += part
            if not closed:
                writer.write_eof()
                await reader.read()
    except (ConnectionResetError, BrokenPipeError):
        closed = True
    except TimeoutError:
        return False
    finally:
        writer.close()
    return _same(wanted, app.got, closed=closed)


def _same(wanted: strict.ReadRequest, got: list[strict.Request], *, closed: bool) -> bool:
    """Who refuses more than the reader does is strict, too, when nothing that follows is read."""
    targets = [
        request._replace(target=_ORIGIN.sub(b"", request.target)) for request in wanted.requests
    ]
    return got == targets or (closed and got == targets[: len(got)])


CASES = (Case("S6", "requests read otherwise", differences, "the reader takes what many take"),)
