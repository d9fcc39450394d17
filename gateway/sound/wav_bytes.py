"""Duration of uncompressed WAV by the bytes after its header, for each `fmt ` chunk.

FFmpeg uses the first `fmt ` chunk and the stated size of `data`. Other decoders use the last chunk,
or play all bytes up to the end of the file.
"""

import struct
from dataclasses import dataclass

_PCM = frozenset({1, 3, 6, 7})  # integer, float, A-law, mu-law
_EXTENSIBLE = 0xFFFE
_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class WavLengths:
    """Durations of a WAV file.

    `formats_ms` has the duration under each `fmt ` chunk, with all bytes after the header.
    `is_cut`: the stated size ends `data` before bytes that are not chunks, so they are audio.
    """

    formats_ms: tuple[int, ...] = ()
    is_cut: bool = False


def wav_lengths(data: bytes) -> WavLengths:
    """Return the durations of uncompressed WAV; empty for compressed or invalid WAV."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return WavLengths()
    at, rates = 12, []
    for _ in range(_CHUNKS):
        head = data[at : at + 8]
        if len(head) < 8:
            break
        size = int.from_bytes(head[4:], "little")
        if head[:4] == b"fmt ":
            rates.append(_bytes_per_s(data, at + 8))
        elif head[:4] == b"data":
            left = len(data) - at - 8
            lengths = tuple(-(-left * 1000 // rate) for rate in rates if rate)
            return WavLengths(lengths, is_cut=not _are_chunks(data, at + 8 + size + size % 2))
        at += 8 + size + size % 2
    return WavLengths()


def _are_chunks(data: bytes, at: int) -> bool:
    """Return whether chunks with printable names fill the file from `at` to its end."""
    for _ in range(_CHUNKS):
        if at >= len(data):
            return True
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if len(name) < 4 or not (name.isascii() and name.decode("latin-1").isprintable()):
            return False
        at += 8 + size + size % 2
        if at > len(data) + 1:
            return False
    return False


def _bytes_per_s(data: bytes, at: int) -> int:
    """Return the byte rate of a `fmt ` chunk, 0 for compressed audio."""
    try:
        form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
        if form == _EXTENSIBLE:
            (form,) = struct.unpack_from("<H", data, at + 24)
    except struct.error:
        return 0
    bits = 8 if form in {6, 7} else bits  # A-law and mu-law have no other width
    return int(rate * channels * bits // 8) if form in _PCM else 0
