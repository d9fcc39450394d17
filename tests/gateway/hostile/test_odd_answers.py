"""Answers in odd forms, most of them legal: each is booked at its bill, none is free."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from billing_provider import PROMPT, ProviderCall, chunk_of
from hostile_scripts import framed

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ASK = {"model": "first", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20}
TEXT, PLAIN = "HTTP/1.1 200 OK\r\ncontent-type: ", "text/event-stream\r\n"
LENGTHS = "content-length: 9\r\ncontent-length: 7\r\n"


def event(document: str) -> str:
    return f"data: {document}\n\n"


def spread(document: str) -> str:
    """A data line for each line of the document."""
    if document == "[DONE]":
        return event(document)
    lines = json.dumps(json.loads(document), indent=1).split("\n")
    return "".join(f"data: {line}\n" for line in lines) + "\n"


def chunked(data: bytes) -> bytes:
    parts = [data[start : start + 99] for start in range(0, len(data), 99)]
    return (
        b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\na: b\r\n\r\n"
    )


TOLD = {
    "CRLF": framed(lambda document: f"data: {document}\r\n\r\n", piece=3),
    "CR": framed(lambda document: f"data: {document}\r\r"),
    "a BOM": framed(event, before="\ufeff"),
    "comments": framed(lambda document: f": a\n\n: b\ndata: {document}\n: c\n\n"),
    "several data lines": framed(spread, piece=7),
    "other fields": framed(lambda document: f"id: 7\nretry: 1\nfoo: a\ndata:{document}\nid\n\n"),
    "trailers": framed(event, packed=chunked, head=TEXT + PLAIN + "transfer-encoding: chunked\r\n"),
    "HTTP/1.0": framed(event, head="HTTP/1.0 200 OK\r\n"),
    "1xx": framed(event, head=f"HTTP/1.1 103 Soon\r\nlink: <a>\r\n\r\n{TEXT}{PLAIN}"),
    "201": framed(event, head=(TEXT + PLAIN).replace("200", "201")),
    "another media type": framed(event, head=TEXT + "application/octet-stream\r\n"),
    "no empty lines": framed(lambda document: f"data: {document}\n"),
    "a document a line": framed(lambda document: f"{document}\n".replace("[DONE]", "")),
}  # fmt: skip
UNREAD = {
    "gzip": framed(event, packed=gzip.compress, head=TEXT + PLAIN + "content-encoding: gzip\r\n"),
    "two lengths": framed(event, head=TEXT + PLAIN + LENGTHS),
    "no events": framed(lambda document: f"{document}>\n"),
}


def test_a_stream_is_booked_at_its_bill_whatever_its_form(hostile) -> None:
    """Red before: the last three of those told, and the last two unread, at their prompt alone."""
    own = {"model": "first", "input": "hi", "max_output_tokens": 20, "store": False}
    for path, body in ((CHAT, ASK), (RESPONSES, own)):
        for name, script in (TOLD | UNREAD).items():
            hostile.play("first", script)
            hostile.post(f"odd {name}", path, {**body, "stream": True})
            hostile.calm()
    for name in TOLD:
        rows = hostile.judged(f"odd {name}")
        assert [row["cost_pusd"] for row in rows] == hostile.bills(f"odd {name}"), name
        assert {row["basis"] for row in rows} == {"reported"}, name
    for name in UNREAD:
        rows = hostile.judged(f"odd {name}")
        assert [(row["basis"], row["flag"]) for row in rows] == [("bound", "unseen")] * 2, name


def counts_each(figure: Callable[[int], int]) -> Any:
    """Stream 20 words, each of them beside a figure of output."""

    async def play(call: ProviderCall) -> None:
        call.bill.input, call.bill.output = PROMPT, 20
        call.head()
        for number in range(1, 21):
            choice = {"index": 0, "delta": {"content": "word "}}
            output = figure(number)
            usage = {"prompt_tokens": PROMPT, "completion_tokens": output}
            usage |= {"total_tokens": PROMPT + output}
            choice["finish_reason"] = "stop" if number == 20 else None
            call.event(chunk_of(choices=[choice], usage=usage))
        call.send("data: [DONE]\n\n")

    return play


@pytest.mark.parametrize(
    ("figure", "flag"),
    [
        (lambda _: 1, "disputed"),  # each of its chunk
        (lambda number: 1 + number % 2, "disputed"),
        (lambda number: number, None),  # honest: all until there
        (lambda number: number - number % 5, None),  # and seldom
        (lambda _: 20, None),  # and as if it were known before
    ],
    ids=["each", "each, unlike", "so far", "now and then", "all"],
)
def test_figures_of_single_chunks_are_not_taken_for_the_whole(hostile, figure, flag) -> None:
    """Red before: of a hundred bytes a token was believed, as one may have 128."""
    team = f"counts {figure(7)} {figure(8)}"
    hostile.play("first", counts_each(figure))
    hostile.post(team, CHAT, {**ASK, "stream": True})
    (row,) = hostile.judged(team)
    assert row["flag"] == flag
    if flag is None:
        assert [row["cost_pusd"]] == hostile.bills(team)
