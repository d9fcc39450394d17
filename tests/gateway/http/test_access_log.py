"""A line a request: what was asked and answered, with neither query, headers nor bodies."""

import asyncio
import json
import logging
from types import SimpleNamespace

import pytest

from backends.secret import Secret
from gateway import logs
from gateway.http.access_log import LOGGER, AccessLog
from gateway.http.connection import CONNECTION

HEADERS = [(b"x-request-id", b"req_1"), (b"x-breakeven-backend", b"pool:a/0"), (b"etag", b"no")]


def scope(path: str = "/v1/chat/completions", **more) -> dict:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "client": ("10.0.0.9", 5),
        **more,
        "query_string": b"key=sk-hidden",
        "headers": [(b"authorization", b"Bearer sk-hidden")],
    }


def asked(app, caplog, given: dict | None = None) -> list[dict]:
    async def send(_message) -> None: ...

    times = iter((1.0, 1.25))
    with caplog.at_level(logging.INFO, LOGGER):
        asyncio.run(AccessLog(app, lambda: next(times))(given or scope(), None, send))
    return [record.fields for record in caplog.records if record.name == LOGGER]


async def answers(_scope, _receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"secret answer", "more_body": True})
    await send({"type": "http.response.body", "body": b"!"})


def test_a_request_is_one_record(caplog) -> None:
    assert asked(answers, caplog) == [
        {
            "method": "POST", "path": "/v1/chat/completions", "status": 200, "duration_ms": 250.0,
            "bytes": 14, "client": "10.0.0.9", "request_id": "req_1", "target": "pool:a/0",
        }
    ]  # fmt: skip


def test_what_takes_the_shorter_way_is_counted_too(caplog) -> None:
    """Streams and answers in one piece pass `send` by; the control is the same without it."""

    def connection(*, takes: bool) -> SimpleNamespace:
        return SimpleNamespace(
            abort=None, take_body=None, listen=None, unsent=None,
            push=lambda _part: takes, answer=lambda *_: takes,
        )  # fmt: skip

    async def short(given, _receive, _send) -> None:
        line = given["extensions"][CONNECTION]
        if line.answer(404, HEADERS, b"none"):
            line.push(b"12345")

    for takes, expected in ((True, (404, 9)), (False, (499, 0))):
        caplog.clear()
        given = scope(extensions={CONNECTION: connection(takes=takes), "other": {}})
        (fields,) = asked(short, caplog, given)
        assert (fields["status"], fields["bytes"]) == expected


def test_who_is_gone_before_an_answer_is_logged_as_well(caplog) -> None:
    async def fails(*_) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        asked(fails, caplog)
    assert [record.fields["status"] for record in caplog.records] == [499]


def test_probes_are_logged_when_they_fail_alone(caplog) -> None:
    async def unready(_scope, _receive, send) -> None:
        await send({"type": "http.response.start", "status": 503})

    assert asked(answers, caplog, scope("/readyz")) == []
    (fields,) = asked(unready, caplog, scope("/readyz"))
    assert fields["status"] == 503


async def talks(_scope, _receive, send) -> None:
    await send({"type": "websocket.accept", "headers": HEADERS[:1]})
    await send({"type": "websocket.send", "text": "secret"})
    await send({"type": "websocket.close", "code": 1000})


async def refuses(_scope, _receive, send) -> None:
    start = {"type": "websocket.http.response.start", "status": 401, "headers": []}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": b"no"})


@pytest.mark.parametrize(("app", "status", "size"), [(talks, 101, 6), (refuses, 401, 2)])
def test_a_websocket_is_one_record_too(app, status: int, size: int, caplog) -> None:
    given = scope("/v1/responses", type="websocket")
    del given["method"]
    (record,) = asked(app, caplog, given)
    assert (record["method"], record["status"], record["bytes"]) == ("GET", status, size)


def test_what_is_no_request_is_none(caplog) -> None:
    async def lifespan(*_) -> None: ...

    assert asked(lifespan, caplog, {"type": "lifespan"}) == []


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_line_holds_no_secret_and_begins_no_line(form, caplog) -> None:
    wanted = SimpleNamespace(format=form, level="warning", to="stdout")
    sink = logs.LogSink("worker-0", wanted, [Secret("hidden-in-the-path")])
    asked(answers, caplog, scope("/v1/a\nhidden-in-the-path/gw_0123456789abcdef0123456789abcdef"))
    (record,) = (record for record in caplog.records if record.name == LOGGER)
    line = sink.format(record)
    assert "hidden" not in line
    assert "\n" not in line
    assert "sk-" not in line
    if form == "json":
        document = json.loads(line)
        assert (document["process"], document["status"], document["message"]) == (
            "worker-0", 200, "request",
        )  # fmt: skip
    else:
        assert " info worker-0 breakeven.access request method=POST path=/v1/a" in line
        assert " status=200 duration_ms=250.0 bytes=14 client=10.0.0.9 " in line
