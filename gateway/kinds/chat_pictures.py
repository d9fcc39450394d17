"""Pictures inside a conversation whose size is known: held by the rule of their target.

Only a part that can be read in one way is measured: `image_url` with data, each member once and in
its own spelling, in a request without members that may change how a vendor cuts a picture. Any
other part stays counted by its bytes and held at the stated most.
"""

import asyncio
import binascii
import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.picture_size import read_pixels
from gateway.kinds.prompt_bytes import TEXT_MEMBERS
from gateway.kinds.prompt_media import PictureSize
from gateway.kinds.prompt_parts import once

_DATA: Final = b"data:image/"
_MARK: Final = ";base64,"
_PART: Final = frozenset(("type", "image_url"))
_INSIDE: Final = frozenset(("url", "detail"))
_LEFT: Final = TEXT_MEMBERS | {"response_format", "audio"}


async def measure_pictures(request: InferenceRequest) -> InferenceRequest:
    """Return the request with the sizes of its pictures, where they are known."""
    if not request.media_parts or not request.members.keys() <= _LEFT:
        return request
    messages = request.members.get("messages")
    if messages is None or _DATA not in bytes(messages):
        return request
    found = await asyncio.to_thread(_measure, bytes(messages))
    if not found or len(found) > request.media_parts:
        return request
    return replace(
        request,
        pictures=tuple(size for size, _ in found),
        picture_bytes=sum(length for _, length in found),
    )


def _measure(messages: bytes) -> list[tuple[PictureSize, int]]:
    """Each picture's size, and the bytes of its data in the conversation."""
    try:
        decoded = json.loads(messages, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return []
    found = []
    for data, detail in _picture_data(decoded):
        try:
            pixels = read_pixels(binascii.a2b_base64(data, strict_mode=True))
        except ValueError:  # its target says what is wrong with it
            continue
        if pixels is not None:
            found.append((PictureSize(pixels.width, pixels.height, detail), len(data)))
    return found


def _picture_data(messages: Any) -> Iterator[tuple[str, str]]:
    """The Base64 of each part that can be read in one way, with the detail that it asks for."""
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict) or part.keys() != _PART or part["type"] != "image_url":
                continue
            given = part["image_url"]
            if isinstance(given, str):
                given = {"url": given}
            if not isinstance(given, dict) or not given.keys() <= _INSIDE:
                continue
            url, detail = given.get("url"), given.get("detail")
            if not isinstance(url, str) or not url.isascii() or not url.startswith("data:image/"):
                continue
            _, mark, data = url.partition(_MARK)
            if mark and len(data) % 4 == 0 and not data.endswith("==="):  # as all decoders read it
                yield data, detail if isinstance(detail, str) else ""
