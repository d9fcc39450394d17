import asyncio
import tracemalloc

import pytest

from backends.base import Deadlines
from backends.errors import BackendError, IdleTimeout, InvalidResponse, UpstreamBroken
from backends.exchange import pour_exchange, read_all
from backends.http import HttpClient
from backends.http_connection import BUFFER_LIMIT_BYTES, READ_BYTES
from backends.origin import Origin

DEADLINES = Deadlines(connect_s=5, head_s=5, idle_s=5)
REQUEST = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


@pytest.fixture
async def client():
    made = HttpClient()
    yield made
    await made.aclose()


async def begin(client, upstream, deadlines=DEADLINES):
    return await client.open(Origin.parse(upstream.url)[0], REQUEST, deadlines)


async def ask(client, upstream, deadlines=DEADLINES):
    exchange = await begin(client, upstream, deadlines)
    return exchange, await read_all(exchange, 1 << 30)


GOOD = {
    "content-length": (OK + b"content-length: 5\r\n\r\nhello", b"hello", True),
    "empty": (OK + b"content-length: 0\r\n\r\n", b"", True),
    "chunked": (CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello", True),
    "chunk extensions": (CHUNKED + b"5;a=b;c\r\nhello\r\n0;d\r\n\r\n", b"hello", True),
    "trailers": (CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 1\r\nx: 2\r\n\r\n", b"hello", True),
    "until close": (OK + b"\r\nhello", b"hello", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "interim answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n"
        + OK + b"content-length: 5\r\n\r\nhello", b"hello", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("name", GOOD)
async def test_framing_at_any_split(upstream, wire, client, name, size):
    raw, body, kept = GOOD[name]
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    steps = [step for piece in pieces for step in (piece, 0)]
    upstream.script = lambda n: steps if kept else [*steps, wire.CLOSE]
    for _ in range(2):
        exchange, got = await ask(client, upstream)
        assert got == body
        assert "x-sum" not in exchange.headers
        assert "link" not in exchange.headers
    assert upstream.connections == (1 if kept else 2)


async def test_headers_are_lower_case_and_repeats_are_joined(upstream, client):
    upstream.script = lambda n: [
        OK + b"X-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\nX-Latin: \xe9\r\n\r\n"
    ]
    exchange, _ = await ask(client, upstream)
    assert (exchange.headers["x-a"], exchange.headers["x-latin"]) == ("1, 2", "é")


TRUNCATED = {
    "content-length": OK + b"content-length: 50\r\n\r\nhello",
    "chunked": CHUNKED + b"5\r\nhello\r\n",
    "inside a chunk": CHUNKED + b"5\r\nhe",
    "inside the trailers": CHUNKED + b"5\r\nhello\r\n0\r\nx-a: 1",
    "a chunk size that is none": CHUNKED + b"5\r\nhello\r\nzz\r\n",
    "a chunk longer than said": CHUNKED + b"5\r\nhellohello\r\n0\r\n\r\n",
    "endless trailers": CHUNKED + b"5\r\nhello\r\n0\r\nx: " + b"a" * 70_000,
}


@pytest.mark.parametrize("ending", ["CLOSE", "RESET"])
@pytest.mark.parametrize("name", TRUNCATED)
async def test_a_body_that_ends_early_is_never_a_good_one(upstream, wire, client, name, ending):
    upstream.script = lambda n: [TRUNCATED[name], 0.02, getattr(wire, ending)]
    exchange = await begin(client, upstream)
    assert exchange.status == 200
    with pytest.raises(UpstreamBroken):
        await read_all(exchange, 1 << 20)
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


BAD_HEADS = {
    "garbage": b"\x16\x03\x01 no http at all\r\n\r\n",
    "html": b"<html>hello</html>\r\n\r\n",
    "http/2": b"HTTP/2 200\r\n\r\n",
    "1 MiB of one header": OK + b"x: " + b"a" * (1 << 20) + b"\r\n\r\n",
    "1 MiB of headers": OK + b"x: y\r\n" * 180_000 + b"\r\n",
    "many small headers": OK + b"".join(b"x%d: y\r\n" % n for n in range(200)) + b"\r\n",
    "endless interim answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 5000,
    "two lengths": OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "length and chunks": OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": OK + b"content-length: -5\r\n\r\nhello",
    "length beyond 64 bits": OK + b"content-length: 99999999999999999999999\r\n\r\nhello",
    "a protocol switch": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
    "a status that is none": b"HTTP/1.1 banana\r\n\r\n",
    "space before the colon": OK + b"content-length : 5\r\n\r\nhello",
    "half a head": OK + b"content-len",
}


@pytest.mark.parametrize("name", BAD_HEADS)
async def test_a_malformed_head_is_refused(upstream, wire, client, name):
    upstream.script = lambda n: [BAD_HEADS[name], 0.02, wire.CLOSE]
    with pytest.raises(InvalidResponse):
        await begin(client, upstream)
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


@pytest.mark.parametrize(
    "excess", [b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"\x00"]
)
@pytest.mark.parametrize("later_s", [None, 0.02])
async def test_what_follows_an_answer_is_never_the_next_one(
    upstream, wire, client, excess, later_s
):
    good = wire.respond(b"good")
    steps = [good + excess] if later_s is None else [good, later_s, excess, 0.02]
    upstream.script = lambda n: steps if n == 1 else [wire.respond(b"next")]
    assert (await ask(client, upstream))[1] == b"good"
    origin = Origin.parse(upstream.url)[0]
    await upstream.until(lambda: client.connections(origin) == 0)
    assert (await ask(client, upstream))[1] == b"next"
    assert upstream.connections == 2


async def test_a_silent_body_times_out(upstream, wire, client):
    upstream.script = lambda n: [CHUNKED + b"5\r\nhello\r\n", wire.HANG]
    exchange = await begin(client, upstream, Deadlines(idle_s=0.05))
    assert await anext(aiter(exchange)) == b"hello"
    with pytest.raises(IdleTimeout):
        await anext(aiter(exchange))


async def test_framing_without_content_is_silence(upstream, wire, client):
    dribble = [step for _ in range(200) for step in (b"e=v;", 0.005)]
    upstream.script = lambda n: [CHUNKED + b"5;", *dribble, wire.HANG]
    exchange = await begin(client, upstream, Deadlines(idle_s=0.1))
    with pytest.raises(IdleTimeout):
        await anext(aiter(exchange))


async def test_a_steady_trickle_is_not_silence(upstream, client):
    trickle = [step for _ in range(12) for step in (b"1\r\na\r\n", 0.1)]
    upstream.script = lambda n: [CHUNKED, *trickle, b"0\r\n\r\n"]
    _, body = await ask(client, upstream, Deadlines(idle_s=1.0))
    assert body == b"a" * 12


async def test_a_reader_that_pauses_is_not_an_upstream_that_is_silent(upstream, client):
    upstream.script = lambda n: [CHUNKED + b"1\r\na\r\n", 0.02, b"1\r\nb\r\n0\r\n\r\n"]
    exchange = await begin(client, upstream, Deadlines(idle_s=0.08))
    parts = aiter(exchange)
    got = await anext(parts)
    await asyncio.sleep(0.25)
    assert got + await anext(parts) == b"ab"


async def test_closing_early_aborts_the_upstream(upstream, wire, client):
    upstream.script = lambda n: [CHUNKED + b"1\r\na\r\n", wire.HANG]
    exchange = await begin(client, upstream)
    await exchange.aclose()
    await exchange.aclose()
    await upstream.until(lambda: upstream.gone_at)
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


async def test_leaving_without_closing_keeps_the_upstream_working(upstream, wire, client):
    """The control of the test above: it is `aclose` that ends the work."""
    upstream.script = lambda n: [CHUNKED + b"1\r\na\r\n", wire.HANG]
    exchange = await begin(client, upstream)
    await asyncio.sleep(0.2)
    assert upstream.gone_at == []
    await exchange.aclose()


async def test_cancelling_the_wait_for_a_head_aborts_the_upstream(upstream, wire, client):
    upstream.script = lambda n: [wire.HANG]
    task = asyncio.create_task(begin(client, upstream))
    await upstream.until(lambda: upstream.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await upstream.until(lambda: upstream.gone_at)


class Sink:
    """Keeps the pieces, and wants no more after one of those that it refuses."""

    def __init__(self, *refusing: bytes) -> None:
        self.got: list[bytes] = []
        self.refusing = refusing

    def __call__(self, piece: bytes) -> bool:
        self.got.append(piece)
        return piece not in self.refusing


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("name", GOOD)
async def test_what_is_poured_is_what_is_read(upstream, wire, client, name, size):
    raw, body, kept = GOOD[name]
    steps = [step for at in range(0, len(raw), size) for step in (raw[at : at + size], 0)]
    upstream.script = lambda n: steps if kept else [*steps, wire.CLOSE]
    for _ in range(2):
        exchange, sink = await begin(client, upstream), Sink()
        assert await pour_exchange(exchange, sink)
        assert b"".join(sink.got) == body
    assert upstream.connections == (1 if kept else 2)


async def test_a_piece_is_poured_before_the_read_returns(upstream, wire, client):
    """No task is woken for it; whoever stops listening gets nothing more."""
    upstream.script = lambda n: [CHUNKED, wire.HANG]
    exchange, sink = await begin(client, upstream), Sink()
    connection = exchange._connection
    pouring = asyncio.create_task(pour_exchange(exchange, sink))
    await asyncio.sleep(0)
    connection.data_received(b"1\r\na\r\n")
    assert sink.got == [b"a"]
    pouring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pouring
    connection.data_received(b"1\r\nb\r\n")
    assert sink.got == [b"a"]
    assert await anext(exchange) == b"b"
    await exchange.aclose()


async def test_after_a_no_what_comes_waits_in_bounds(upstream, client):
    block = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    upstream.script = lambda n: [CHUNKED, b"1\r\na\r\n", 0.02, *[block] * 160, b"0\r\n\r\n"]
    exchange, sink = await begin(client, upstream, Deadlines(idle_s=0.2)), Sink(b"a")
    assert not await pour_exchange(exchange, sink)
    await asyncio.sleep(0.5)  # longer than the upstream may be silent, which it is not to blame for
    assert sink.got == [b"a"]
    assert await pour_exchange(exchange, sink)
    assert sum(map(len, sink.got)) == 1 + 160 * 65536
    assert max(map(len, sink.got)) <= BUFFER_LIMIT_BYTES + READ_BYTES


async def test_silence_while_pouring_times_out(upstream, wire, client):
    upstream.script = lambda n: [CHUNKED + b"1\r\na\r\n", 0.01, b"1\r\nb\r\n", wire.HANG]
    exchange, sink = await begin(client, upstream, Deadlines(idle_s=0.05)), Sink()
    async with asyncio.timeout(10):
        with pytest.raises(IdleTimeout):
            await pour_exchange(exchange, sink)
    assert b"".join(sink.got) == b"ab"


async def test_a_steady_trickle_is_poured_to_its_end(upstream, client):
    trickle = [step for _ in range(12) for step in (b"1\r\na\r\n", 0.1)]
    upstream.script = lambda n: [CHUNKED, *trickle, b"0\r\n\r\n"]
    exchange, sink = await begin(client, upstream, Deadlines(idle_s=0.6)), Sink()
    assert await pour_exchange(exchange, sink)
    assert b"".join(sink.got) == b"a" * 12


@pytest.mark.parametrize("ending", ["CLOSE", "RESET", b"no chunk size\r\n"])
async def test_a_body_that_breaks_while_it_is_poured_is_never_a_good_one(
    upstream, wire, client, ending
):
    last = getattr(wire, ending) if isinstance(ending, str) else ending
    upstream.script = lambda n: [CHUNKED + b"1\r\na\r\n", 0.05, last, wire.HANG]
    exchange, sink = await begin(client, upstream), Sink()
    with pytest.raises(UpstreamBroken):
        await pour_exchange(exchange, sink)
    assert sink.got == [b"a"]


async def test_a_slow_reader_bounds_what_is_buffered(upstream, wire, client):
    block = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    upstream.script = lambda n: [CHUNKED, *[block] * 160, b"0\r\n\r\n"]
    exchange = await begin(client, upstream)
    largest = total = 0
    parts = aiter(exchange)
    await asyncio.sleep(0.3)
    async for part in parts:
        largest = max(largest, len(part))
        total += len(part)
        await asyncio.sleep(0)
    assert total == 160 * 65536
    # The limit, plus one read of the loop that was under way when the socket was paused.
    assert largest <= BUFFER_LIMIT_BYTES + READ_BYTES


async def test_an_endless_line_is_read_in_bounded_memory(upstream, wire, client):
    upstream.script = lambda n: [CHUNKED, *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 400, wire.HANG]
    exchange = await begin(client, upstream)
    tracemalloc.start()
    with pytest.raises(UpstreamBroken, match="larger"):
        await read_all(exchange, 4 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20


async def test_an_answer_before_the_request_was_sent_ends_the_connection(upstream, wire, client):
    """A refusal of a long body comes early; the rest of that body must not follow it."""
    big = b"POST / HTTP/1.1\r\ncontent-length: 50000000\r\n\r\n" + b"x" * 49_999_999
    received = asyncio.Event()

    async def early(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(wire.respond(b"no", "413 Too Large"))
        await received.wait()
        writer.close()

    server = await asyncio.start_server(early, "127.0.0.1", 0)
    origin = Origin("http", "127.0.0.1", server.sockets[0].getsockname()[1])
    exchange = await client.open(origin, big, DEADLINES)
    assert exchange.status == 413
    received.set()
    assert await read_all(exchange, 100) == b"no"
    assert client.connections(origin) == 0
    server.close()


async def test_errors_are_of_our_kinds_only(upstream, wire, client):
    cases = [*BAD_HEADS.values(), *TRUNCATED.values()]
    upstream.script = lambda n: [cases[n - 1], wire.RESET]
    for _ in cases:
        with pytest.raises(BackendError):
            await ask(client, upstream)
