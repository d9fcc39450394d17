"""The fields of a head that are read, whatever stands beside them."""

import pytest

from gateway.http.fields import Fields, read_fields


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], Fields()),
        ([(b"host", b"x"), (b"accept", b"*/*")], Fields()),
        ([(b"authorization", b"Bearer abc"), (b"x-api-key", b"other")], Fields("abc")),
        ([(b"x-api-key", b" abc "), (b"authorization", b"Bearer other")], Fields("abc")),
        ([(b"authorization", b"Basic abc"), (b"authorization", b"bearer  b ")], Fields("b")),
        ([(b"content-length", b"12"), (b"content-length", b"7")], Fields(length=12)),
        ([(b"content-length", b"many")], Fields()),
        ([(b"content-type", b"Application/JSON; charset=utf-8")], Fields()),
        ([(b"content-type", b"text/plain")], Fields(media="text/plain")),
        ([(b"content-type", b"a/json"), (b"content-type", b"b/c")], Fields(media="b/c")),
        ([(b"content-type", b"b/c"), (b"content-type", b"a/json")], Fields(media="b/c")),
        ([(b"content-type", b"b/c"), (b"content-type", b"d/e")], Fields(media="b/c")),
        ([(b"content-type", b"")], Fields(media="")),
        ([(b"content-type", b"b/c; boundary=json")], Fields(media="b/c; boundary=json")),
        ([(b"x-breakeven-session", b"a"), (b"x-session-id", b"b")], Fields(session="a")),
        ([(b"idempotency-key", b"a"), (b"idempotency-key", b"b")], Fields(once=b"a")),
        (
            [(b"idempotency-key", b"Bearer x"), (b"x-session-id", b"s")],
            Fields(session="s", once=b"Bearer x"),
        ),
        ([(b"content-encoding", b"GZip"), (b"content-encoding", b"")], Fields(encoding="gzip")),
        ([(b"content-encoding", b" identity")], Fields()),
        ([(b"x-session-id", b"s" * 300)], Fields(session="s" * 256)),
    ],
)
def test_what_is_read(headers, found: Fields) -> None:
    assert read_fields(headers) == found


def test_a_token_is_in_no_representation() -> None:
    found = read_fields([(b"authorization", b"Bearer gw_id_s3cret")])
    assert "s3cret" in str(found.token)
    assert "s3cret" not in repr(found)
