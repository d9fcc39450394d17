"""The length of uncompressed WAV by the bytes behind its head, for each `fmt ` chunk in it.

FFmpeg believes the first `fmt ` chunk and the stated size of `data`. Other decoders believe the
last chunk, or play all bytes up to the end of the file.
"""

import struct

_PCM = frozenset({1, 3, 6, 7})  # integer, float, A-law, mu-law
_EXTENSIBLE = 0xFFFE
_CHUNKS = 64


def wav_formats_ms(data: bytes) -> tuple[int, ...]:
    """Return the length in ms under each `fmt ` chunk; none of compressed or broken WAV."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return ()
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
            return tuple(-(-left * 1000 // rate) for rate in rates if rate)
        at += 8 + size + size % 2
    return ()


def _bytes_per_s(data: bytes, at: int) -> int:
    """Return the byte rate of a `fmt ` chunk, 0 if it is not of uncompressed sound."""
    try:
        form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
        if form == _EXTENSIBLE:
            (form,) = struct.unpack_from("<H", data, at + 24)
    except struct.error:
        return 0
    bits = 8 if form in {6, 7} else bits  # A-law and mu-law have no other width
    return int(rate * channels * bits // 8) if form in _PCM else 0
