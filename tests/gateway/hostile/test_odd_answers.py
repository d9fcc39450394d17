"""Answers in odd forms, most of them legal: each is booked at its bill, none is free."""

import gzip
import json

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
