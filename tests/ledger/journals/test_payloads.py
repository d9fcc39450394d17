"""Records as bytes: they come back, and one without a bound is refused where it is made."""

import msgspec
import pytest

from ledger.journals.layout import encode_head
from ledger.journals.payloads import (
    RECORD_LIMIT_BYTES,
    RecordTooLargeError,
    decode_payload,
    encode_payload,
)


def test_a_record_comes_back(opened, settled, refused) -> None:
    for record in (opened(1), settled(1), refused(1)):
        assert decode_payload(encode_payload(record)) == record


def test_an_unbounded_record_is_refused_where_it_is_made(opened) -> None:
    with pytest.raises(RecordTooLargeError):
        encode_head(encode_payload(opened(1, decision=bytes(RECORD_LIMIT_BYTES))), 1, 77)


def test_what_is_no_record_is_told() -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_payload(b"\x80")
