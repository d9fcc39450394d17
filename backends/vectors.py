"""Vectors of embeddings in the encoding that the client asked for."""

import re
import struct
from base64 import b64decode, b64encode
from typing import Any, Final

import msgspec

# The first vector, if it is a list of numbers. It stands near the beginning of an answer.
_NUMBERS: Final = re.compile(rb'"embedding"\s*+:\s*+\[')
_FIRST_BYTES: Final = 64 * 1024


def encode_vector(vector: Any, encoding: Any) -> Any:
    """Return a vector in the requested encoding: numbers, or base64 of little-endian floats.

    The floats have 32 bits.
    """
    if encoding == "base64" and isinstance(vector, list):
        return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    if encoding != "base64" and isinstance(vector, str):
        packed = b64decode(vector)
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    return vector


def pack_answer(body: bytes) -> bytes:
    """Return an answer with its vectors in base64.

    Servers that ignore `encoding_format` send numbers, which OpenAI's Node client reads as base64:
    it then returns other vectors without an error. An answer that has no numbers, or numbers that
    are no floats of 32 bits, is returned unchanged.
    """
    if _NUMBERS.search(body, 0, _FIRST_BYTES) is None:
        return body
    try:
        answer = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        items = msgspec.json.decode(answer["data"], type=list[dict[str, msgspec.Raw]])
        for item in items:  # one by one: decoding all at once would stop the other threads
            if numbers := item.get("embedding"):
                vector = encode_vector(msgspec.json.decode(numbers), "base64")
                item["embedding"] = msgspec.Raw(msgspec.json.encode(vector))
    except (msgspec.MsgspecError, KeyError, struct.error, OverflowError, UnicodeDecodeError):
        return body
    return msgspec.json.encode({**answer, "data": items})
