"""A size counts only where a file can be read in one way."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds import picture_size
from gateway.kinds.picture_size import STEPS, Pixels, StepLimit, read_sizes


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def head(width: int, height: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))


def sizes_of(data: bytes) -> tuple[Pixels, ...]:
    return read_sizes(data, StepLimit())


SIGN, DATA, END = b"\x89PNG\r\n\x1a\n", chunk(b"IDAT", zlib.compress(b"\0")), chunk(b"IEND", b"")


def png(width: int = 30, height: int = 20) -> bytes:
    return SIGN + head(width, height) + DATA + END


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def frame(width: int, height: int, marker: int = 0xC0) -> bytes:
    return segment(marker, struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00")


THUMBNAIL = segment(0xE1, b"Exif\0\0\xff\xd8" + frame(9, 9))
SCAN = segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") + b"\x12\xff\x00\xff\xd0\x34"


def jpeg(*parts: bytes) -> bytes:
    return b"\xff\xd8" + b"".join(parts) + b"\xff\xd9"


def gif(screen: tuple[int, int] = (30, 20), *frames: tuple[int, int]) -> bytes:
    each = b"".join(
        b"\x2c" + struct.pack("<HHHHB", 0, 0, *sides, 0) + b"\x02\x01\x00\x00" for sides in frames
    )
    table = b"\0" * 6
    return b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + table + each + b"\x3b"


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(
        name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
        for name, data in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def lossy(width: int, height: int) -> tuple[bytes, bytes]:
    return b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)


def lossless(width: int, height: int) -> tuple[bytes, bytes]:
    return b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14)


def canvas(width: int, height: int) -> tuple[bytes, bytes]:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"VP8X", b"\0\0\0\0" + sides


HONEST = {
    "png": png(),
    "jpeg": jpeg(THUMBNAIL, frame(30, 20), SCAN),
    "progressive": jpeg(frame(30, 20, 0xC2), SCAN, segment(0xC4, b"a"), SCAN),
    "gif": gif((30, 20), (30, 20)),
    "webp": webp(lossy(30, 20)),
    "lossless": webp(lossless(30, 20)),
    "extended": webp(canvas(30, 20), (b"ICCP", b"abc"), lossy(30, 20)),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_file_has_its_size(name) -> None:
    assert sizes_of(HONEST[name]) == (Pixels(30, 20),)


LIARS = {
    "a second head": SIGN + head(1, 1) + head(9000, 9000) + DATA + END,
    "no head first": SIGN + DATA + head(1, 1) + END,
    "no data": SIGN + head(1, 1) + END,
    "a picture behind": png(1, 1) + png(9000, 9000),
    "moving": SIGN + head(1, 1) + chunk(b"acTL", b"\0" * 8) + DATA + END,
    "a chunk beyond the end": SIGN + head(1, 1) + DATA + b"\xff" * 8,
    "no pixels": png(0, 20),
    "more than is decoded": png(2**31 - 1, 2**31 - 1),
    "two frames": jpeg(frame(1, 1), frame(9000, 9000), SCAN),
    "a frame behind the scan": jpeg(frame(1, 1), SCAN, frame(9000, 9000), SCAN),
    "a height that comes later": jpeg(frame(30, 20), SCAN, segment(0xDC, b"\x40\x00")),
    "a second start": jpeg(frame(1, 1), SCAN, b"\xff\xd8", frame(9000, 9000), SCAN),
    "a picture of unknown size behind": jpeg(frame(1, 1), SCAN)
    + jpeg(frame(9000, 9000), SCAN)[:-2],
    "a hierarchical size": jpeg(segment(0xDE, b"\x08\x40\x00\x40\x00\x00"), frame(1, 1), SCAN),
    "an expanded size": jpeg(frame(1, 1), segment(0xDF, b"\x11"), SCAN),
    "a segment without its length": jpeg(b"\xff\xe0\x00\x00", frame(1, 1), SCAN),
    "no end": jpeg(frame(1, 1), SCAN)[:-2],
    "a frame beyond the screen": gif((1, 1), (9000, 9000)),
    "several frames": gif((30, 20), (30, 20), (30, 20)),
    "no frame": gif(),
    "a canvas of another size": webp(canvas(1, 1), lossy(9000, 9000)),
    "two pictures": webp(lossless(1, 1), lossy(9000, 9000)),
    "webp that moves": webp(canvas(30, 20), (b"ANIM", b"\0" * 6), lossy(30, 20)),
    "another format": b"BM" + b"\0" * 60,
    "another format ahead": b" " + png(),
    "nothing": b"",
}


@pytest.mark.parametrize("name", LIARS)
def test_what_may_be_read_in_two_ways_has_no_size(name) -> None:
    assert sizes_of(LIARS[name]) == ()


PHOTO = jpeg(frame(30, 20), SCAN)
BEHIND = {
    "a newline": (PHOTO + b"\n", {(30, 20)}),
    "the marks of a phone": (PHOTO + b"\0" * 40 + b"SEFT", {(30, 20)}),
    "a preview": (PHOTO + jpeg(frame(3, 2), SCAN), {(30, 20), (3, 2)}),
    "a preview and marks": (PHOTO + b"\0a" + jpeg(frame(3, 2), SCAN) + b"z", {(30, 20), (3, 2)}),
    "a larger one": (PHOTO + jpeg(frame(9000, 9000), SCAN), {(30, 20), (9000, 9000)}),
    "what a cut left of a screenshot": (png() + b"\0" * 9, {(30, 20)}),
    "a gif's newline": (gif((30, 20), (30, 20)) + b"\n", {(30, 20)}),
    "a webp's newline": (webp(lossy(30, 20)) + b"\n", {(30, 20)}),
}


@pytest.mark.parametrize("name", BEHIND)
def test_what_stands_behind_a_picture_hides_no_size(name) -> None:
    data, sizes = BEHIND[name]
    assert set(sizes_of(data)) == sizes


@given(
    st.sampled_from(
        [b"\xff", b"\xff\x00", b"\xff\xd0", b"\xff\xd8\xff", b"\xff\xda", b"\x01a", b"\0"]
    ),
    st.sampled_from([PHOTO[:-2], SIGN + head(9, 9), b"GIF89a" + b"\x09\0" * 2 + b"\0\0\0\x21\xfe"]),
    st.integers(1, 4_000),
    st.binary(max_size=8),
)
def test_the_work_grows_with_the_bytes(unit, start, times, end) -> None:
    """A run of fill bytes took a time that grows with its square."""
    steps, data = StepLimit(), start + unit * times + end
    read_sizes(data, steps)
    assert STEPS - steps.left + steps.searched <= 2 * len(data) + 2


def test_nothing_repeats_in_what_is_searched() -> None:
    """So that each place of a client's bytes is looked at once, wherever a search begins."""
    assert not {"+", "*", "{"} & set(picture_size._MARKER.pattern.decode("latin-1"))


@pytest.mark.parametrize("blocks", [STEPS // 2 - 9, STEPS + 1])
def test_a_file_of_too_many_blocks_has_no_size(blocks) -> None:
    text = b"\x21\xfe" + b"\x01a" * blocks + b"\0"
    data = gif((30, 20), (30, 20))
    assert bool(sizes_of(data[:-1] + text + data[-1:])) == (blocks < STEPS)
    steps = StepLimit()
    assert bool(
        read_sizes(SIGN + head(3, 2) + chunk(b"tEXt", b"") * blocks + DATA + END, steps)
    ) == (blocks < STEPS)


@given(st.sampled_from(sorted(HONEST)), st.data())
def test_a_part_of_a_file_has_no_size(name, data) -> None:
    whole = HONEST[name]
    assert sizes_of(whole[: data.draw(st.integers(0, len(whole) - 1))]) == ()


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP"]),
    st.binary(),
)
def test_any_bytes_are_read_without_a_fault(sign, rest) -> None:
    sizes_of(sign + rest)
