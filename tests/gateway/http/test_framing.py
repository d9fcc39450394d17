"""Heads on which two readers might part are nobody's request; whole connections: tests/security."""

import pytest

from gateway.http.framing import CODING, HOST, TARGET, TUNNEL, VERSION, framing_fault

G = (b"host", b"g")


@pytest.mark.parametrize(
    ("method", "version", "target", "headers", "words"),
    [
        (b"GET", "1.1", b"/a?b=c", [G], None),
        (b"GET", "1.1", b"http://g/a?b", [G], None),
        (b"OPTIONS", "1.1", b"*", [G], None),
        (b"CONNECT", "1.1", b"g:80", [G], TUNNEL),
        (b"GET", "1.0", b"/a", [], None),
        (b"POST", "1.1", b"/a", [G, (b"transfer-encoding", b"Chunked")], None),
        (b"GET", "0.9", b"/a", [], VERSION),
        (b"GET", "2.0", b"/a", [G], VERSION),
        (b"GET", "1.1", b"/a", [], HOST),
        (b"GET", "1.1", b"/a", [G, G], HOST),
        (b"GET", "1.0", b"/a", [G, G], HOST),
        (b"GET", "1.1", b"*", [G], TARGET),
        (b"GET", "1.1", b"a", [G], TARGET),
        (b"GET", "1.1", b"/a#b", [G], TARGET),
        (b"GET", "1.1", b"http://g/a#b", [G], TARGET),
        (b"GET", "1.1", b"http:/a", [G], TARGET),
        (b"POST", "1.1", b"/a", [G, (b"transfer-encoding", b"gzip, chunked")], CODING),
        (b"POST", "1.1", b"/a", [G, *2 * [(b"transfer-encoding", b"chunked")]], CODING),
        (b"POST", "1.0", b"/a", [(b"transfer-encoding", b"chunked")], CODING),
    ],
)
def test_a_head_is_sound_or_its_fault_is_said(method, version, target, headers, words) -> None:
    assert framing_fault(method, version, target, headers) == words


@pytest.mark.parametrize("host", [b"g", b"g:80", b"g:", b"g ", b"[::1]:80", b"", b"a.b-c_d"])
def test_addresses(host) -> None:
    assert framing_fault(b"GET", "1.1", b"/", [(b"host", host)]) is None


@pytest.mark.parametrize("host", [b"g/", b"g?", b"u@g", b"g:x", b"g:1:2", b"[::1", b"a b", b"g\\"])
def test_what_is_no_address(host) -> None:
    assert framing_fault(b"GET", "1.1", b"/", [(b"host", host)]) == HOST
