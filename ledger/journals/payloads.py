"""Encoding of records as frame payloads in every journal format: msgpack, limited in size."""

from typing import get_args

import msgspec

from ledger.journals.records import Record

RECORD_LIMIT_BYTES = 1024 * 1024
encode_payload = msgspec.msgpack.Encoder().encode  # the code that makes a frame enforces it
_DECODER: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_MEMBERS = {
    str(record.__struct_config__.tag): {"type", *record.__struct_fields__}
    for record in get_args(Record)
}
_ADDED = ("Expected `array` of at most length", "Invalid enum value", "Invalid value")


class RecordTooLargeError(ValueError):
    """A record above the size limit: the code that made it did not limit its size."""


class NewerRecordError(msgspec.MsgspecError):
    """A record with a type, member or value that this version does not know."""


def decode_payload(payload: bytes) -> Record:
    """Return the record. Raises `msgspec.MsgspecError` if the payload is not a record."""
    try:
        return _DECODER.decode(payload)
    except msgspec.ValidationError as error:
        if _is_newer(payload, str(error)):
            raise NewerRecordError(str(error)) from error
        raise


def _is_newer(payload: bytes, fault: str) -> bool:
    """Return whether a newer version wrote the record: it is well-formed, with unknown parts."""
    said = msgspec.msgpack.decode(payload)
    if not isinstance(said, dict) or not isinstance(said.get("type"), str):
        return False
    known = _MEMBERS.get(said["type"])
    return known is None or bool(set(said) - known) or fault.startswith(_ADDED)
