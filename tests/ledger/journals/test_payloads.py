"""Records as bytes: they come back, and one without a bound is refused where it is made."""

import msgspec
import pytest

from ledger.journals.layout import encode_head
from ledger.journals.payloads import (
    RECORD_LIMIT_BYTES,
    NewerRecordError,
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


@pytest.mark.parametrize("changes", [
    {"type": "unheard-of"}, {"added_later": 7}, {"basis": "guessed"},
    {"legs": [["0", "prefill", 3, 9, 2, None, "done", "more"]]},
])  # fmt: skip
def test_what_a_newer_version_wrote_is_told_apart(settled, changes) -> None:
    document = {**msgspec.to_builtins(settled(1)), **changes}
    with pytest.raises(NewerRecordError):
        decode_payload(msgspec.msgpack.encode(document))


@pytest.mark.parametrize("changes", [{"cost_pusd": 1.5}, {"attempt_id": None}, {"type": 7}])
def test_what_nobody_wrote_is_no_newer_record(settled, changes) -> None:
    document = {**msgspec.to_builtins(settled(1)), **changes}
    with pytest.raises(msgspec.ValidationError) as told:
        decode_payload(msgspec.msgpack.encode(document))
    assert not isinstance(told.value, NewerRecordError)
