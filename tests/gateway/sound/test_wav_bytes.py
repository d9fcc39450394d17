"""WAV by its bytes: each `fmt ` chunk counts, the stated size of `data` does not."""

import struct

import pytest

from backends.engine import silence
from gateway.sound.wav_bytes import wav_formats_ms

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
    assert wav_formats_ms(data) == lengths


def test_an_extensible_format_names_its_own_behind_its_head() -> None:
    extension = struct.pack("<HHIH14x", 22, 16, 4, 1)
    head = struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16_000, 2, 16) + extension
    chunk = b"fmt " + struct.pack("<I", len(head)) + head
    assert wav_formats_ms(wav(chunk, size=16_000)) == (1000,)
