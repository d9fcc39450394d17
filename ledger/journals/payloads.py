"""A record as the bytes of a frame, in every format of the journal: msgpack, bounded."""

import msgspec

from ledger.journals.records import Record

RECORD_LIMIT_BYTES = 1024 * 1024
encode_payload = msgspec.msgpack.Encoder().encode  # whoever makes a frame of it bounds it
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class RecordTooLargeError(ValueError):
    """A record that no journal takes: its size was not bounded where it was made."""


def decode_payload(payload: bytes) -> Record:
    """Return the record; raises `msgspec.MsgspecError` for what is none."""
    return _DECODER.decode(payload)
