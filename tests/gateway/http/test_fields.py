"""The fields of a head that are read, whatever stands beside them."""

import pytest

from gateway.http.fields import RequestHead, read_fields


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], RequestHead()),
        ([(b"host", b"x"), (b"accept", b"*/*")], RequestHead()),
        ([(b"authorization", b"Bearer abc"), (b"x-api-key", b"other")], RequestHead("abc")),
        ([(b"x-api-key", b" abc "), (b"authorization", b"Bearer other")], RequestHead("abc")),
        ([(b"api-key", b"abc"), (b"x-api-key", b"other")], RequestHead("abc")),
        ([(b"authorization", b"Basic abc"), (b"authorization", b"bearer  b ")], RequestHead("b")),
        ([(b"content-length", b"12"), (b"content-length", b"7")], RequestHead(length=12)),
        ([(b"content-length", b"many")], RequestHead()),
        ([(b"content-type", b"Application/JSON; charset=utf-8")], RequestHead()),
        ([(b"content-type", b"text/plain")], RequestHead(media="text/plain")),
        ([(b"content-type", b"a/json"), (b"content-type", b"b/c")], RequestHead(media="b/c")),
        ([(b"content-type", b"b/c"), (b"content-type", b"a/json")], RequestHead(media="b/c")),
        ([(b"content-type", b"b/c"), (b"content-type", b"d/e")], RequestHead(media="b/c")),
        ([(b"content-type", b"")], RequestHead(media="")),
        ([(b"content-type", b"b/c; boundary=json")], RequestHead(media="b/c; boundary=json")),
        ([(b"x-breakeven-session", b"a"), (b"x-session-id", b"b")], RequestHead(session="a")),
        ([(b"idempotency-key", b"a"), (b"idempotency-key", b"b")], RequestHead(once=b"a")),
        (
            [(b"x-breakeven-tags", b"run=a"), (b"x-breakeven-tags", b"b=c")],
            RequestHead(tags="run=a,b=c"),
        ),
        (
            [(b"idempotency-key", b"Bearer x"), (b"x-session-id", b"s")],
            RequestHead(session="s", once=b"Bearer x"),
        ),
        (
            [(b"content-encoding", b"GZip"), (b"content-encoding", b"")],
            RequestHead(encoding="gzip"),
        ),
        ([(b"content-encoding", b" identity")], RequestHead()),
        ([(b"x-session-id", b"s" * 300)], RequestHead(session="s" * 256)),
    ],
)
def test_what_is_read(headers, found: RequestHead) -> None:
    assert read_fields(headers) == found


def test_a_token_is_in_no_representation() -> None:
    found = read_fields([(b"authorization", b"Bearer gw_id_s3cret")])
    assert "s3cret" in str(found.token)
    assert "s3cret" not in repr(found)
