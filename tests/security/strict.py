"""A reference reader of HTTP/1.1 requests, strict where RFC 9110 and 9112 leave a choice.

It takes what the grammar has and nothing else: no bare LF in a head, no line folding, no second
`content-length`, no length beside chunks, no coding but `chunked`, one `host`. Three things it lets
pass because the RFC does, and they move no boundary: several spaces in a request line (9112, 3),
empty lines before one (2.2), and whatever stands in a chunk's extension (7.1.1). Slow and short, so
that it can be checked by reading; it shares nothing with the reader that it judges.
"""

import re
from typing import NamedTuple

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST = re.compile(rb"(" + TOKEN + rb") +([\x21-\x7e]+) +HTTP/(1)\.([01])\Z")
_FIELD = re.compile(
    rb"("
    + TOKEN
    + rb"):[ \t]*([\x21-\x7e\x80-\xff]?(?:[\x20-\x7e\x80-\xff\t]*[\x21-\x7e\x80-\xff])?)[ \t]*\Z"
)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\Z")
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~%!$&'()*+,;=]*)(?::[0-9]*)?\Z")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]+.*\Z")


class Request(NamedTuple):
    method: bytes
    target: bytes
    body: bytes


class ReadRequest(NamedTuple):
    """`end`: "whole" (nothing is left), "more" (half a request) or "bad" (what follows is none)."""

    requests: list[Request]
    end: str


class _Bad(Exception):
    pass


class _More(Exception):
    pass


def read(stream: bytes) -> ReadRequest:
    """All requests of a connection, up to its end or the first that is none."""
    found: list[Request] = []
    place = 0
    try:
        while True:
            while stream[place : place + 1] in (b"\r", b"\n"):
                place += 1
            if place == len(stream):
                return ReadRequest(found, "whole")
            request, place, last = _request(stream, place)
            found.append(request)
            if last:
                return ReadRequest(found, "whole")
    except _Bad:
        return ReadRequest(found, "bad")
    except _More:
        return ReadRequest(found, "more")


def _line(stream: bytes, place: int) -> tuple[bytes, int]:
    """To a CRLF; either of the two alone is in no line."""
    end = stream.find(b"\r\n", place)
    line = stream[place:] if end < 0 else stream[place:end]
    if b"\n" in line or b"\r" in line.removesuffix(b"\r" if end < 0 else b""):
        raise _Bad
    if end < 0:
        raise _More
    return line, end + 2


def _request(stream: bytes, place: int) -> tuple[Request, int, bool]:
    line, place = _line(stream, place)
    first = _REQUEST.match(line)
    if first is None:
        raise _Bad
    method, target, old = first[1], first[2], first[4] == b"0"
    fields, place = _fields(stream, place)
    _check_target(method, target)
    _check_host([value for name, value in fields if name == b"host"], old=old)
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    options = b",".join(value for name, value in fields if name == b"connection").lower()
    words = [word.strip() for word in options.split(b",")]
    last = b"close" in words or (old and b"keep-alive" not in words)
    if codings:
        if lengths or old or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise _Bad
        body, place = _chunks(stream, place)
        return Request(method, target, body), place, last
    if not lengths:
        return Request(method, target, b""), place, last
    if len(lengths) > 1 or not re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
        raise _Bad
    end = place + int(lengths[0])
    if end > len(stream):
        raise _More
    return Request(method, target, stream[place:end]), end, last


def _fields(stream: bytes, place: int) -> tuple[list[tuple[bytes, bytes]], int]:
    found = []
    while True:
        line, place = _line(stream, place)
        if not line:
            return found, place
        field = _FIELD.match(line)
        if field is None:
            raise _Bad
        found.append((field[1].lower(), field[2]))


def _check_target(method: bytes, target: bytes) -> None:
    if method == b"CONNECT":
        if not re.fullmatch(rb"[^/?#@]+:[0-9]+", target):
            raise _Bad
    elif b"#" in target or not (
        target.startswith(b"/") or _ABSOLUTE.match(target) or (method, target) == (b"OPTIONS", b"*")
    ):
        raise _Bad


def _check_host(hosts: list[bytes], *, old: bool) -> None:
    if len(hosts) > 1 or (not hosts and not old) or not all(_HOST.match(host) for host in hosts):
        raise _Bad


def _chunks(stream: bytes, place: int) -> tuple[bytes, int]:
    parts = []
    while True:
        line, place = _line(stream, place)
        size = _CHUNK.match(line)
        if size is None:
            raise _Bad
        length = int(size[1], 16)
        if not length:
            _, place = _fields(stream, place)
            return b"".join(parts), place
        parts.append(stream[place : place + length])
        end = stream[place + length : place + length + 2]
        if not b"\r\n".startswith(end):
            raise _Bad
        if len(end) < 2:
            raise _More
        place += length + 2
