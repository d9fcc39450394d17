"""Checks of request heads that two HTTP/1.1 parsers might read differently.

The parser accepts more than the grammar. A request is rejected if a proxy in front and this gateway
could disagree on its host or its end (request smuggling).
"""

import re
from collections.abc import Sequence
from typing import Any

HOST = (
    "HTTP/1.1 wants one `host` header with an address in it: a request with none, with two, or "
    "with a path or a name there may be read as one for somebody else."
)
VERSION = "This is not HTTP/1.1 (or 1.0): no other version is spoken on this port."
METHOD = (
    "The first word is not a method of HTTP: they are written in capitals, as GET and POST. "
    "Nor is TLS spoken here: an address of this port begins with http."
)
TARGET = "The second word of a request line is a path that begins with `/`, without a `#`."
TUNNEL = (
    "This is no proxy and connects to nobody: its address is the base URL that a client is given."
)
CODING = "Of `transfer-encoding` only one is taken, `chunked`, and in HTTP/1.1 alone."
HOSTLESS = "1.0"  # HTTP/1.0 has neither `host` nor chunks
_VERSIONS = frozenset(("1.1", HOSTLESS))
_ADDRESS = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~%!$&'()*+,;=]*)(?::[0-9]*)?[ \t]*"
).fullmatch
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]+[^#]*").fullmatch


def framing_fault(
    method: bytes, version: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> str | None:
    """Return the fault of a request head as a message; names in `headers` are lower case.

    Returns `None` for a valid head.
    """
    if version not in _VERSIONS:
        return VERSION
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts != 1:
        if hosts or version != HOSTLESS:
            return HOST
    elif not _ADDRESS(headers[names.index(b"host")][1]):
        return HOST
    if b"transfer-encoding" in names:
        coding = headers[names.index(b"transfer-encoding")][1]
        several = names.count(b"transfer-encoding") > 1
        if several or coding.lower() != b"chunked" or version == HOSTLESS:
            return CODING
    if (target[:1] != b"/" or b"#" in target) and not _is_other_form(method, target):
        return TUNNEL if method == b"CONNECT" else TARGET
    return None


def _is_other_form(method: bytes, target: bytes) -> bool:
    """Return whether the target is in absolute form, or is `OPTIONS *`."""
    return (method, target) == (b"OPTIONS", b"*") or bool(_ABSOLUTE(target))


def strip_upgrade(scope: Any, url: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the request head without its upgrade."""
    lines = [b"%s %s HTTP/%s" % (scope["method"].encode(), url, scope["http_version"].encode())]
    for name, value in headers:
        kept = value
        if name == b"connection":
            tokens = [token.strip() for token in value.split(b",")]
            kept = b", ".join(token for token in tokens if token.lower() != b"upgrade")
        if name != b"upgrade" and (kept or not value):
            lines.append(name + b": " + kept)
    return b"\r\n".join([*lines, b"", b""])
