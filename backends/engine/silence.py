"""Silence as a WAV file in memory, for test requests to transcription engines."""

import struct

RATE = 16_000  # samples a second, 16 bit, one channel


def wav(seconds: float) -> bytes:
    size = 2 * round(seconds * RATE)
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    head = b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", len(form))
    return head + form + b"data" + struct.pack("<I", size) + bytes(size)
