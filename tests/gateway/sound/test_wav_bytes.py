"""WAV by its bytes: each `fmt ` chunk counts, the stated size of `data` does not."""

import struct

import pytest

from backends.engine import silence
from gateway.sound.wav_bytes import wav_lengths

MULAW = (7, 1, 8000, 8000, 1, 8)


def fmt(*values: int) -> bytes:
    return b"fmt \x10\0\0\0" + struct.pack("<HHIIHH", *values)


def wav(*formats: bytes, stated: int = 8000, size: int = 8000) -> bytes:
    data = b"data" + struct.pack("<I", stated) + bytes(size)
    return b"RIFF\0\0\0\0WAVE" + b"".join(formats) + data


@pytest.mark.parametrize(
    ("data", "lengths"),
    [
        (silence.wav(2.5), (2500,)),
        (wav(fmt(*MULAW)), (1000,)),
        (wav(fmt(*MULAW), stated=16), (1000,)),
        (wav(fmt(7, 1, 8000, 8000, 1, 65_528)), (1000,)),
        (wav(fmt(*MULAW), fmt(7, 65_535, 2**32 - 1, 8000, 1, 65_528)), (1000, 1)),
        (wav(fmt(7, 65_535, 2**32 - 1, 8000, 1, 65_528), fmt(*MULAW)), (1, 1000)),
        (wav(fmt(49, 1, 8000, 1625, 65, 0)), ()),  # GSM
        (wav(fmt(1, 0, 8000, 8000, 1, 8)), ()),
        (wav(), ()),
        (b"RIFF\0\0\0\0WAVE" + fmt(*MULAW), ()),
        (wav(fmt(*MULAW))[:30], ()),
        (b"RIFF____WAVE" + b"junk\0\0\0\0" * 1_000_000, ()),
        (b"", ()),
    ],
)
def test_lengths_by_bytes(data: bytes, lengths: tuple[int, ...]) -> None:
    assert wav_lengths(data).formats_ms == lengths


def test_an_extensible_format_names_its_own_behind_its_head() -> None:
    extension = struct.pack("<HHIH14x", 22, 16, 4, 1)
    head = struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16_000, 2, 16) + extension
    chunk = b"fmt " + struct.pack("<I", len(head)) + head
    assert wav_lengths(wav(chunk, size=16_000)).formats_ms == (1000,)


LIST = b"LIST\x04\0\0\0INFO"


@pytest.mark.parametrize(
    ("behind", "stated", "is_cut"),
    [
        (b"", 8000, False),
        (b"", 2**32 - 1, False),
        (LIST, 8000, False),
        (LIST + b"id3 \x03\0\0\0abc\0", 8000, False),
        (LIST + b"id3 \x03\0\0\0abc", 8000, False),  # without the byte that fills up
        (b"", 16, True),
        (b"\x7f" * 500, 8000, True),
        (b"LIST\x09\0\0\0INFO", 8000, True),
        (LIST + b"x", 8000, True),
        (LIST * 65, 8000, True),
    ],
)
def test_bytes_behind_the_stated_end_are_sound_unless_they_are_chunks(
    behind: bytes, stated: int, is_cut: bool
) -> None:
    assert wav_lengths(wav(fmt(*MULAW), stated=stated) + behind).is_cut == is_cut
