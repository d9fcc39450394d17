import json

import pytest
from msgspec.structs import replace

from backends.base import Call, Deadlines
from backends.errors import (
    BackendError,
    HeadTimeout,
    InvalidResponse,
    RequestUnsendable,
    ServerError,
    UpstreamOverloaded,
    WrongAddress,
)
from backends.exchange import read_all
from backends.http import HttpClient
from backends.openai import Credentials, OpenAIBackend
from backends.origin import Origin
from backends.quirks import Quirks
from backends.ratelimit import Allowance, RateLimitHeaders
from backends.secret import Secret
from backends.sending import Transmission

KEY = "sk-test-0123456789"


@pytest.fixture
async def client():
    made = HttpClient()
    yield made
    await made.aclose()


def backend(upstream, client, **credentials) -> OpenAIBackend:
    return OpenAIBackend(
        upstream.url + "/base/v1/", Credentials(Secret(KEY), **credentials),
        client=client, wall_clock=lambda: 1_700_000_000.0,
    )  # fmt: skip


def call(*, stream: bool = False, **headers: str) -> Call:
    return Call(
        "/chat/completions", b'{"model":"m"}', stream, headers, Deadlines(connect_s=5, head_s=5)
    )


async def test_what_a_provider_wants_otherwise_is_told_in_its_words(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(b'{"id":1}')]
    quirks = Quirks(
        renames={"max_completion_tokens": "max_tokens"}, leaves_out=("user",),
        key_headers=("api-subscription-key",),
    )  # fmt: skip
    made = OpenAIBackend(upstream.url, Credentials(Secret(KEY)), client=client, quirks=quirks)
    body = b'{"model":"m","max_completion_tokens":5,"user":"u"}'
    for path, told, ignored in (
        ("/chat/completions", {"model": "m", "max_tokens": 5}, ("user",)),
        ("/embeddings", json.loads(body), ()),
    ):
        asked = replace(call(), path=path, body=body, transmission=Transmission())
        await read_all(await made.open(asked), 100)
        head, sent = upstream.requests[-1].split(b"\r\n\r\n")
        assert json.loads(sent) == told
        assert asked.transmission.ignored == ignored
        assert f"api-subscription-key: {KEY}".encode() in head


async def test_the_request_has_what_is_listed_and_nothing_else(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(b'{"id":1}')]
    sent = call(**{
        "X-Request-Id": "r1", "traceparent": "00-a-b-01", "authorization": "Bearer client",
        "cookie": "c", "x-forwarded-for": "1.2.3.4", "openai-organization": "theirs",
        "tracestate": "a\r\nx-evil: 1", "host": "evil",
    })  # fmt: skip
    exchange = await backend(upstream, client, headers={"X-Team": Secret("a")}).open(sent)
    assert await read_all(exchange, 100) == b'{"id":1}'
    head, body = upstream.requests[0].split(b"\r\n\r\n")
    host = upstream.url.removeprefix("http://")
    assert head.decode().split("\r\n") == [
        "POST /base/v1/chat/completions HTTP/1.1",
        f"host: {host}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "accept-encoding: identity",
        "user-agent: breakeven",
        "x-team: a",
        f"authorization: Bearer {KEY}",
        "x-request-id: r1",
        "traceparent: 00-a-b-01",
        "content-length: 13",
    ]
    assert body == b'{"model":"m"}'


async def test_a_form_is_sent_as_what_it_is(upstream, wire, client):
    """Its boundary is its own: the head of one is not taken for the next, nor for JSON's."""
    upstream.script = lambda n: [wire.respond(b"{}")]
    made = backend(upstream, client)
    kinds = ['multipart/form-data; boundary="a"', 'multipart/form-data; boundary="b"', None]
    for kind in kinds:
        exchange = await made.open(replace(call(), content_type=kind))
        await read_all(exchange, 100)
    heads = [request.split(b"\r\n\r\n")[0].decode() for request in upstream.requests]
    told = [line for head in heads for line in head.split("\r\n") if "content-type" in line]
    assert told == [f"content-type: {kind or 'application/json'}" for kind in kinds]
    assert ["accept: */*" in head for head in heads] == [True, True, False]
    with pytest.raises(RequestUnsendable, match="content type"):
        await made.open(replace(call(), content_type="a\r\nx: y"))


async def test_without_a_key_none_is_sent(upstream, wire, client):
    upstream.script = lambda n: [wire.respond()]
    await (await OpenAIBackend(upstream.url, client=client).open(call())).aclose()
    assert b"authorization" not in upstream.requests[0].lower()


@pytest.mark.parametrize("path", ["/a b", "/a\r\nx: y", "", "x", "/../" + "a" * 300, "/a?b=c"])
async def test_odd_paths_are_refused(upstream, client, path):
    with pytest.raises(RequestUnsendable):
        await backend(upstream, client).open(Call(path, b"{}", stream=False))


async def test_a_key_with_line_ends_is_refused(upstream, client):
    broken = OpenAIBackend(upstream.url, Credentials(Secret("a\r\nb")), client=client)
    with pytest.raises(RequestUnsendable):
        await broken.open(call())


def test_keys_are_not_shown():
    assert KEY not in repr(Credentials(Secret(KEY), {"api-key": Secret(KEY)}))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("408 Late", HeadTimeout),
        ("429 Too Many Requests", UpstreamOverloaded),
        ("503 No", UpstreamOverloaded),
        ("529 Busy", UpstreamOverloaded),
        ("500 Oops", ServerError),
        ("502 Bad Gateway", ServerError),
        ("504 Late", ServerError),
    ],
)
async def test_refusals_and_faults_become_errors(upstream, wire, client, status, kind):
    error = b'{"error":{"message":"your key sk-123 ...","type":"t","code":"request_quota"}}'
    upstream.script = lambda n: [wire.respond(error, status, "retry-after: 7\r\n")]
    target = backend(upstream, client)
    for _ in range(2):
        with pytest.raises(kind, match="request_quota") as caught:
            await target.open(call())
    assert (caught.value.status, caught.value.retry_after_s) == (int(status[:3]), 7.0)
    assert "sk-" not in str(caught.value)
    assert upstream.connections == 1  # the error body was read, the connection kept


async def test_a_wait_that_only_the_body_tells_is_told(upstream, wire, client):
    """Red before: Google's `RetryInfo` was read where a 200 had it, and not beside a 429."""
    told = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    error = json.dumps({"error": {"code": 429, "details": [told]}}).encode()
    upstream.script = lambda n: [wire.respond(error, "429 No", "retry-after: 3\r\n" * (n > 1))]
    target, waits = backend(upstream, client), []
    for _ in range(2):
        with pytest.raises(UpstreamOverloaded) as caught:
            await target.open(call())
        waits.append(caught.value.retry_after_s)
    assert waits == [17.0, 3.0]


@pytest.mark.parametrize("status", ["408 Late", "429 Too Many", "500 Oops", "503 No"])
async def test_what_an_error_counts_is_charged(upstream, wire, client, status):
    """Red before: the body of a failure was read for its code alone."""
    usage = {"prompt_tokens": 8, "completion_tokens": 5}
    body = json.dumps({"error": {"message": "no"}, "usage": usage}).encode()
    upstream.script = lambda n: [wire.respond(body, status)]
    with pytest.raises(BackendError) as caught:
        await backend(upstream, client).open(call())
    assert (caught.value.billable, caught.value.usage) == (True, usage)


@pytest.mark.parametrize("body", [b"<html>", b'"x"', b'{"detail":"no"}', b"[" * 9000, b"x" * 99999])
async def test_error_bodies_of_any_kind(upstream, wire, client, body):
    upstream.script = lambda n: [wire.respond(body, "503 Unavailable")]
    with pytest.raises(UpstreamOverloaded):
        await backend(upstream, client).open(call())


async def test_an_error_body_that_never_comes_does_not_hold_the_request(upstream, wire, client):
    head = b"HTTP/1.1 503 No\r\ncontent-length: 9\r\n\r\n"
    upstream.script = lambda n: [head, wire.HANG]
    with pytest.raises(UpstreamOverloaded):
        await backend(upstream, client).open(call())
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "422 No"])
async def test_other_refusals_are_the_answer(upstream, wire, client, status):
    upstream.script = lambda n: [wire.respond(b'{"error":{}}', status)]
    for stream in (False, True):
        exchange = await backend(upstream, client).open(call(stream=stream))
        assert exchange.status == int(status[:3])
        assert await read_all(exchange, 100) == b'{"error":{}}'


@pytest.mark.parametrize(
    ("status", "headers", "stream", "kind"),
    [  # nobody charges for a redirect
        ("301 Moved", "location: http://169.254.169.254/\r\n", False, WrongAddress),
        ("307 Moved", "location: /other\r\n", True, WrongAddress),
        ("200 OK", "content-encoding: gzip\r\n", False, InvalidResponse),
        ("200 OK", "", True, InvalidResponse),  # JSON where a stream was asked for
    ],
)
async def test_answers_that_cannot_be_passed_on(
    upstream, wire, client, status, headers, stream, kind
):
    upstream.script = lambda n: [wire.respond(b"{}", status, headers)]
    with pytest.raises(kind):
        await backend(upstream, client).open(call(stream=stream))
    assert len(upstream.requests) == 1


async def test_a_stream_is_an_event_stream(upstream, wire, client):
    upstream.script = lambda n: [wire.STREAM_HEAD, wire.chunked(b"data: {}\n\n")]
    exchange = await backend(upstream, client).open(call(stream=True))
    assert await read_all(exchange, 100) == b"data: {}\n\n"


async def test_a_refusal_carries_what_was_said_of_the_limits(upstream, wire, client):
    headers = (
        "x-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 0\r\n"
        "x-ratelimit-reset-requests: 12s\r\n"
    )
    upstream.script = lambda n: [wire.respond(b"{}", 429, headers if n == 1 else "")]
    target = backend(upstream, client)
    with pytest.raises(UpstreamOverloaded) as refused:
        await target.open(call())
    assert refused.value.rate_limit == RateLimitHeaders(Allowance(500, 0, 12.0))
    with pytest.raises(UpstreamOverloaded) as silent:
        await target.open(call())
    assert silent.value.rate_limit is None


USAGE = {"prompt_tokens": 7, "completion_tokens": 2}
PLAIN = "content-type: application/json\r\n"


@pytest.mark.parametrize(
    ("body", "headers", "usage", "hides"),
    [
        (json.dumps({"choices": [], "usage": USAGE}).encode(), PLAIN, USAGE, True),
        (b'{"choices": []}', PLAIN, None, True),
        (b"<html>", "content-type: text/html\r\n", None, False),
        (b"\x1f\x8b", "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", None, True),
    ],
)
async def test_what_stands_where_a_stream_was_asked_for_tells_its_usage(
    upstream, wire, client, body, headers, usage, hides
) -> None:
    """Red before: its output was billed beside the books."""
    head = f"HTTP/1.1 200 OK\r\n{headers}content-length: {len(body)}\r\n\r\n".encode()
    upstream.script = lambda n: [head + body]
    with pytest.raises(InvalidResponse) as caught:
        await backend(upstream, client).open(call(stream=True))
    assert (caught.value.usage, caught.value.hides_output) == (usage, hides)
