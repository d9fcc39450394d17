"""A chat completion in one piece, told in a dialect as the request's path tells it."""

from typing import Any

from gateway.request.dialects.response_encoder import encode


def encode_whole(voice: Any, body: bytes) -> bytes:
    """Return the whole answer of an encoder."""
    voice.read_whole(body)
    return encode(voice.document())
