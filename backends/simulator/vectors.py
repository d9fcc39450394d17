"""Embeddings without a model: unit vectors that depend on the text alone."""

import struct
import zlib
from base64 import b64encode

VECTOR_SIZE = 64


def vector(data: bytes) -> list[float]:
    """Return a unit vector that is equal for equal texts."""
    raw = [(zlib.crc32(data, place) / 2**31) - 1.0 for place in range(VECTOR_SIZE)]
    norm = sum(value * value for value in raw) ** 0.5
    return [value / norm for value in raw]


def in_base64(values: list[float]) -> str:
    """Return little-endian 32-bit floats in base64, as OpenAI's SDK requests."""
    return b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
