"""Pictures within a conversation: their data are not text, and known sizes bound them.

A picture is recognised if its part is unambiguous: `image_url` with Base64, and each member once.
Then its data are not text. Its size is used if the file states it (`picture_size`), the part has no
other member that a vendor reads, and no member changes how pictures are cut. Any other picture is
held at the maximum.
"""

import asyncio
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from gateway.http.body import Members
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.picture_size import StepLimit, read_sizes
from gateway.kinds.prompt_bytes import TEXT_MEMBERS
from gateway.kinds.prompt_media import PictureSize
from gateway.kinds.prompt_parts import once

MEASURED_BYTES: Final = 32 * 1024 * 1024  # of Base64 in one request; later pictures get no size
_DATA: Final = b"data:image"  # JSON may escape the slash
_URL: Final = "data:image/"
_MARK: Final = ";base64,"
_PART: Final = frozenset(("type", "image_url", "cache_control"))
_INSIDE: Final = frozenset(("url", "detail", "format"))
_PLAIN: Final = TEXT_MEMBERS | {"response_format", "audio"}
# Vendors' members that change the tokens of a picture (`vl_high_resolution_images`, `min_pixels`,
# `mm_processor_kwargs`, `max_dynamic_patch`, `size`, ...); names may be written in escapes.
_CUTS: Final = re.compile(
    rb"imag|pict|pixel|resolution|visi|visual|media|multimodal|mm_|detail|tile|crop|patch|slice"
    rb"|resi[zs]e|size|edge|scale|processor|preproc|vl_|_res|quality|frame|\\u00",
    re.IGNORECASE,
)


class _FoundPicture(NamedTuple):
    """A picture's Base64; `told`: its part has no other member that a vendor reads."""

    data: str
    detail: str
    told: bool


class _MeasuredPictures(NamedTuple):
    sizes: tuple[PictureSize, ...]
    unread: int
    data_bytes: int  # in the conversation


async def measure_pictures(request: InferenceRequest) -> InferenceRequest:
    """Return the request with the bytes of its pictures, and with their sizes where known."""
    messages = request.members.get("messages")
    if not request.media_parts or messages is None or _DATA not in bytes(messages):
        return request
    counts = not _changes_pictures(request.members)
    measured = await asyncio.to_thread(_measure, bytes(messages), counts=counts)
    found = len(measured.sizes) + measured.unread
    if not 0 < found <= request.media_parts:
        return request
    return replace(
        request,
        pictures=measured.sizes,
        picture_bytes=measured.data_bytes,
        unread_pictures=measured.unread,
    )


def _changes_pictures(members: Members) -> bool:
    """Return whether a vendor's member may change how pictures are cut."""
    return any(
        name not in _PLAIN
        and (_CUTS.search(name.encode()) or _CUTS.search(bytes(members[name]))) is not None
        for name in members
    )


def _measure(messages: bytes, *, counts: bool) -> _MeasuredPictures:
    """Return the sizes of the pictures, or only their number if `counts` is false."""
    try:
        decoded = json.loads(messages, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return _MeasuredPictures((), 0, 0)
    escaped = b"\\/" in messages and messages.count(b"/") == messages.count(b"\\/")
    sizes, unread, data_bytes, steps = [], 0, 0, StepLimit()
    for picture in _picture_data(decoded):
        data_bytes += len(picture.data) + (picture.data.count("/") if escaped else 0)
        size = None
        if counts and picture.told and data_bytes <= MEASURED_BYTES:
            size = _size_of(picture, steps)
        if size is None:
            unread += 1
        else:
            sizes.append(size)
    return _MeasuredPictures(tuple(sizes), unread, data_bytes)


def _size_of(found: _FoundPicture, steps: StepLimit) -> PictureSize | None:
    """Return the size that every decoder finds; None if decoders may differ."""
    if len(found.data) % 4 or found.data.endswith("==="):
        return None
    try:
        first, *behind = read_sizes(binascii.a2b_base64(found.data, strict_mode=True), steps)
    except ValueError:  # no size, too; the target reports the error
        return None
    return PictureSize(first.width, first.height, found.detail, tuple(behind))


def _picture_data(messages: Any) -> Iterator[_FoundPicture]:
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict) or part.get("type") != "image_url":
                continue
            given = part.get("image_url")
            if isinstance(given, str):
                given = {"url": given}
            if not isinstance(given, dict):
                continue
            url, detail = given.get("url"), given.get("detail")
            if not isinstance(url, str) or not url.isascii() or not url.startswith(_URL):
                continue
            _, mark, data = url.partition(_MARK)
            if mark and data:
                told = part.keys() <= _PART and given.keys() <= _INSIDE
                yield _FoundPicture(data, detail if isinstance(detail, str) else "", told)
