"""Documents within a conversation: their data do not count as text.

A document is recognised if its part is unambiguous: `file` with Base64 in `file_data`, and each
member once. Then its data are not text, and its pages are estimated as pictures of unknown size.
The bound does not change: a file may fill its target's context, however short it is.
"""

import asyncio
import json
import math
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.prompt_parts import once

PAGE_BYTES: Final = 64 * 1024  # of Base64 per page, roughly, for a PDF with pictures and text
PAGES_LIMIT: Final = 100  # maximum that most vendors read of one file
_HINT: Final = b'"file_data"'
_DATA: Final = "data:"
_MARK: Final = ";base64,"


async def measure_files(request: InferenceRequest) -> InferenceRequest:
    """Return the request with the bytes of its documents separated from its text."""
    messages = bytes(request.members.get("messages", b""))
    if not request.files or _HINT not in messages:
        return request
    sizes = await asyncio.to_thread(_sizes, messages)
    if not 0 < len(sizes) <= request.files:
        return request
    pages = sum(min(math.ceil(size / PAGE_BYTES), PAGES_LIMIT) for size in sizes)
    return replace(
        request,
        picture_bytes=request.picture_bytes + sum(sizes),
        unread_pictures=request.unread_pictures + pages,
    )


def _sizes(messages: bytes) -> list[int]:
    """Return the encoded bytes of each document's data, as they stand in the conversation."""
    try:
        decoded = json.loads(messages, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return []
    escaped = b"\\/" in messages and messages.count(b"/") == messages.count(b"\\/")
    return [len(data) + (data.count("/") if escaped else 0) for data in _documents(decoded) if data]


def _documents(messages: Any) -> Iterator[str]:
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict) or part.get("type") != "file":
                continue
            file = part.get("file")
            given = file.get("file_data") if isinstance(file, dict) else None
            if not isinstance(given, str) or not given.isascii() or not given.startswith(_DATA):
                continue
            _, mark, data = given.partition(_MARK)
            if mark:
                yield data
