"""Sizes of a picture in pixels, as any decoder of the file may find them.

A target charges for what it decodes. So a size is used only if the file's blocks are contiguous and
state one size: PNG, JPEG and WebP decoders make as many pixels as the header has. Pictures in data
that cameras append (previews, films, own marks) count, too, as a decoder may take either. Other
files (two headers, a later size, another format) have no size, and are held at the maximum. The
bytes are a client's, so each is read at most twice. The blocks of all pictures of a request are
limited (`StepLimit`); beyond that no size is known.
"""

import re
from typing import Final, NamedTuple

PIXELS_LIMIT: Final = 2**28  # decoders refuse larger pictures (Pillow: 179 million pixels)
STEPS: Final = 65_536  # blocks of all pictures: a GIF of 16 MB has as many
PICTURES: Final = 8  # in one file: phones append a preview or two


class Pixels(NamedTuple):
    """Width and height as stored; a viewer may rotate the picture."""

    width: int
    height: int


class StepLimit:
    """The number of picture blocks that may still be read; `searched` counts skipped bytes."""

    __slots__ = ("left", "searched")

    def __init__(self, steps: int = STEPS) -> None:
        self.left, self.searched = steps, 0

    def take(self) -> None:
        """Count one block. Raises `IndexError` beyond the limit."""
        self.left -= 1
        if self.left < 0:
            raise IndexError


# After a scan begins, a marker is neither a stuffed byte, a restart nor a fill byte. A fill byte
# begins no match and nothing repeats: each position is read once.
_MARKER: Final = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
_FRAMES: Final = frozenset((*range(0xC0, 0xD0),)) - {0xC4, 0xC8, 0xCC}
_EOI, _SOS = 0xD9, 0xDA
# A second start, a height that comes later or is expanded, segments without length, and fill.
_FORBIDDEN: Final = frozenset((*range(0xC0), *range(0xD0, 0xD9), 0xDC, 0xDE, 0xDF, 0xFF))
_JPEG: Final = b"\xff\xd8\xff"
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_OTHERS: Final = (_PNG, b"GIF87a", b"GIF89a", b"WEBP")


class _Picture(NamedTuple):
    pixels: Pixels
    end: int  # of the file's own blocks


def read_sizes(data: bytes, steps: StepLimit) -> tuple[Pixels, ...]:
    """Return the sizes of all pictures that a decoder may take, empty if one is unknown."""
    try:
        first = _read_picture(data, 0, steps)
        if first is None:
            return ()
        sizes, place = [first.pixels], first.end
        if any(data.find(sign, place) >= 0 for sign in _OTHERS):
            return ()
        while (place := data.find(_JPEG, place)) >= 0:
            behind = _read_picture(data, place, steps)
            if behind is None or len(sizes) == PICTURES:
                return ()
            sizes.append(behind.pixels)
            place = behind.end
    except IndexError:  # the file ends within a block, or has too many
        return ()
    if any(min(size) < 1 or size.width * size.height > PIXELS_LIMIT for size in sizes):
        return ()
    return tuple(dict.fromkeys(sizes))


def _read_picture(data: bytes, place: int, steps: StepLimit) -> _Picture | None:
    if data.startswith(_JPEG, place):
        return _jpeg(data, place + 2, steps)
    if data.startswith(_PNG):
        return _png(data, steps)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _gif(data, steps)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data, steps)
    return None


def _png(data: bytes, steps: StepLimit) -> _Picture | None:
    """Read chunks up to `IEND`; the only header is first, and animations (`acTL`) are refused."""
    place, pixels, has_data = 8, None, False
    while place < len(data):
        steps.take()
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
            return _Picture(pixels, end) if has_data and pixels else None
        place = end
    return None


def _jpeg(data: bytes, place: int, steps: StepLimit) -> _Picture | None:
    """Read segments and scans up to the end of the image, with one frame and no later height."""
    pixels = None
    while True:
        steps.take()
        marker = data[place + 1]
        if data[place] != 0xFF or marker in _FORBIDDEN:
            return None
        if marker == _EOI:
            return None if pixels is None else _Picture(pixels, place + 2)
        length = _big(data, place + 2, 2)
        if length < 2:
            return None
        end = place + 2 + length
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
            steps.searched += place - end


def _gif(data: bytes, steps: StepLimit) -> _Picture | None:
    """Read blocks up to the trailer; the one frame is within the screen, as some read only it."""
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
            steps.take()
            place += 1 + data[place]
        steps.take()
        place += 1
    return _Picture(screen, place + 1) if frames == 1 else None


def _colours(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes, steps: StepLimit) -> _Picture | None:
    """Read chunks up to the stated end, with one picture; a stated canvas has its size."""
    whole = 8 + _little(data, 4, 4)
    if whole > len(data):
        return None
    place, canvas, pictures = 12, None, []
    while place < whole:
        steps.take()
        name, length = data[place : place + 4], _little(data, place + 4, 4)
        body, place = place + 8, place + 8 + length + length % 2
        if place > whole:
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
    return _Picture(pictures[0], whole)


def _big(data: bytes, place: int, count: int) -> int:
    """Return a big-endian number. Raises `IndexError` beyond the data."""
    return int.from_bytes(_bytes(data, place, count), "big")


def _little(data: bytes, place: int, count: int) -> int:
    """Return a little-endian number. Raises `IndexError` beyond the data."""
    return int.from_bytes(_bytes(data, place, count), "little")


def _bytes(data: bytes, place: int, count: int) -> bytes:
    if place + count > len(data):
        raise IndexError
    return data[place : place + count]
