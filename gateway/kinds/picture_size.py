"""The size of a picture in pixels, as whoever decodes the file finds it.

A target charges for what it decodes, so a size counts only where a file can be read in one way: its
blocks follow each other from the first byte to the last, and state one size. PNG, JPEG and WebP
decoders make as many pixels as the one header says, whatever the data hold. Anything else (two
headers, a size that comes later, a second picture behind the first, another format) has no size
here and is held at the most.
"""

import re
from typing import Final, NamedTuple

PIXELS_LIMIT: Final = 2**28  # decoders refuse what is larger (Pillow: 179 million pixels)


class Pixels(NamedTuple):
    """Width and height as stored; a viewer may turn the picture."""

    width: int
    height: int


# From a scan's data on, a marker is what is neither a stuffed byte, a restart nor a fill byte.
_MARKER: Final = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")
_FRAMES: Final = frozenset((*range(0xC0, 0xD0),)) - {0xC4, 0xC8, 0xCC}
_EOI, _SOS = 0xD9, 0xDA
# A second start, a height that comes later, what has no length, and fill, which nobody needs.
_FORBIDDEN: Final = frozenset((*range(0xC0), *range(0xD0, 0xD9), 0xDC, 0xFF))


def read_pixels(data: bytes) -> Pixels | None:
    """Return the size that every decoder finds, None where there may be two or none."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            found = _png(data)
        elif data.startswith(b"\xff\xd8\xff"):
            found = _jpeg(data)
        elif data.startswith((b"GIF87a", b"GIF89a")):
            found = _gif(data)
        elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            found = _webp(data)
        else:
            found = None
    except IndexError:  # it ends within a block
        return None
    if found is None or min(found) < 1 or found.width * found.height > PIXELS_LIMIT:
        return None
    return found


def _png(data: bytes) -> Pixels | None:
    """Chunks up to `IEND`, with one head, which is first. A moving one (`acTL`) has more."""
    place, pixels, has_data = 8, None, False
    while place < len(data):
        length, name = _big(data, place, 4), data[place + 4 : place + 8]
        end = place + 12 + length
        if end > len(data) or (pixels is None) != (name == b"IHDR") or name == b"acTL":
            return None
        if name == b"IHDR":
            if length != 13:
                return None
            pixels = Pixels(_big(data, place + 8, 4), _big(data, place + 12, 4))
        has_data = has_data or name == b"IDAT"
        if name == b"IEND":
            return pixels if has_data and end == len(data) else None
        place = end
    return None


def _jpeg(data: bytes) -> Pixels | None:
    """Segments and scans up to the end of the image, with one frame and no later height."""
    place, pixels = 2, None
    while True:
        marker = data[place + 1]
        if data[place] != 0xFF or marker in _FORBIDDEN:
            return None
        if marker == _EOI:
            return pixels if place + 2 == len(data) else None
        end = place + 2 + _big(data, place + 2, 2)
        if marker in _FRAMES:
            if pixels is not None:
                return None
            pixels = Pixels(_big(data, place + 7, 2), _big(data, place + 5, 2))
        place = end
        if marker == _SOS:
            following = _MARKER.search(data, end)
            if following is None or pixels is None:
                return None
            place = following.start(1) - 1


def _gif(data: bytes) -> Pixels | None:
    """Blocks up to the trailer, with one frame inside the screen: some read the frame alone."""
    screen = Pixels(_little(data, 6, 2), _little(data, 8, 2))
    place, frames = 13 + _colours(data[10]), 0
    while data[place] != 0x3B:
        kind = data[place]
        if kind == 0x2C:
            frames += 1
            left, top, width, height = (_little(data, place + at, 2) for at in (1, 3, 5, 7))
            if left + width > screen.width or top + height > screen.height:
                return None
            place += 11 + _colours(data[place + 9])
        elif kind == 0x21:
            place += 2
        else:
            return None
        while data[place]:
            place += 1 + data[place]
        place += 1
    return screen if frames == 1 and place + 1 == len(data) else None


def _colours(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> Pixels | None:
    """Chunks up to the stated end, with one picture; a canvas that is stated is of its size."""
    if 8 + _little(data, 4, 4) != len(data):
        return None
    place, canvas, pictures = 12, None, []
    while place < len(data):
        name, length = data[place : place + 4], _little(data, place + 4, 4)
        body, place = place + 8, place + 8 + length + length % 2
        if place > len(data):
            return None
        if name == b"VP8X":
            if canvas is not None:
                return None
            canvas = Pixels(_little(data, body + 4, 3) + 1, _little(data, body + 7, 3) + 1)
        elif name == b"VP8 ":
            sides = _little(data, body + 6, 2) & 0x3FFF, _little(data, body + 8, 2) & 0x3FFF
            pictures.append(Pixels(*sides))
        elif name == b"VP8L":
            bits = _little(data, body + 1, 4)
            pictures.append(Pixels((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        elif name in (b"ANIM", b"ANMF"):
            return None
    if len(pictures) != 1 or (canvas is not None and canvas != pictures[0]):
        return None
    return pictures[0]


def _big(data: bytes, place: int, count: int) -> int:
    """Raises `IndexError` where the data end before."""
    return int.from_bytes(_bytes(data, place, count), "big")


def _little(data: bytes, place: int, count: int) -> int:
    """Raises `IndexError` where the data end before."""
    return int.from_bytes(_bytes(data, place, count), "little")


def _bytes(data: bytes, place: int, count: int) -> bytes:
    if place + count > len(data):
        raise IndexError
    return data[place : place + count]
