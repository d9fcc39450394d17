"""How long a sound lasts, by its file's own head: prices are by the second, holds come before.

Of uncompressed WAV the length follows from its bytes, so it is a bound as well. FLAC, MP4, Ogg and
MP3 state theirs; whoever made the file may have stated anything, so it is believed as an estimate,
and the bound is what so many bytes can hold at the lowest rate that speech is encoded at. Of any
other file the bytes are all there is to go by.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

# Opus for voice goes down to 6 kbit/s; MP3 to 8 (RFC 6716 section 2.1, ISO 11172-3).
LEAST_BYTES_PER_S = 750
USUAL_BYTES_PER_S = 4000  # 32 kbit/s, as telephones and browsers record speech
ROUNDED_MS = 1000  # providers count whole seconds
LONGEST_MS = 500 * 3_600_000
_PCM = frozenset({1, 3, 6, 7})  # integer, float, A-law, mu-law
_EXTENSIBLE = 0xFFFE
_SEARCHED = 64 * 1024
_CHUNKS = 64  # a file of empty ones would hold up the loop that all requests share
_LAYER_3 = {  # kbit/s by index, for MPEG-1 and for MPEG-2 and 2.5
    3: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


@dataclass(frozen=True, slots=True)
class AudioDuration:
    """Milliseconds: the best estimate, and what it cannot exceed. `known`: the file tells."""

    ms: int
    bound_ms: int
    known: bool


def duration_of(data: bytes) -> AudioDuration:
    """Of a whole file; never fails: what cannot be read is estimated from its size."""
    most = min(_ms(len(data), LEAST_BYTES_PER_S) + ROUNDED_MS, LONGEST_MS)
    try:
        exact = _wav(data)
        if exact is not None:
            told = min(exact, LONGEST_MS)
            return AudioDuration(told, min(told + ROUNDED_MS, LONGEST_MS), known=True)
        for read in _READERS:
            stated = read(data)
            if stated is not None and 0 < stated <= LONGEST_MS:
                return AudioDuration(stated, max(most, stated + ROUNDED_MS), known=True)
    except (struct.error, ZeroDivisionError, IndexError):
        pass
    return AudioDuration(min(_ms(len(data), USUAL_BYTES_PER_S), most), most, known=False)


def _wav(data: bytes) -> int | None:
    """From the bytes behind the head, whatever length the head states."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    at, bytes_per_s = 12, 0
    for _ in range(_CHUNKS):
        (size,) = struct.unpack_from("<I", data, at + 4)
        if data[at : at + 4] == b"fmt ":
            form, channels, rate, _, _, bits = _format(data, at + 8)
            if form == _EXTENSIBLE:
                (form,) = struct.unpack_from("<H", data, at + 32)
            if form not in _PCM:
                return None
            bytes_per_s = rate * channels * bits // 8
        elif data[at : at + 4] == b"data":
            return _ms(len(data) - at - 8, bytes_per_s)
        at += 8 + size + size % 2
    return None


def _format(data: bytes, at: int) -> tuple[int, ...]:
    return struct.unpack_from("<HHIIHH", data, at)


def _flac(data: bytes) -> int | None:
    if data[:4] != b"fLaC":
        return None
    (packed,) = struct.unpack_from(">Q", data, 18)
    rate, samples = int(packed) >> 44, int(packed) & (1 << 36) - 1
    return samples * 1000 // rate


def _mp4(data: bytes) -> int | None:
    """`mvhd`, wherever in the file it stands."""
    if data[4:8] != b"ftyp":
        return None
    at = data.find(b"mvhd")
    if at < 0:
        return None
    form = ">20xIQ" if data[at + 4] == 1 else ">12xII"
    scale, length = struct.unpack_from(form, data, at + 4)
    return int(length) * 1000 // int(scale)


def _ogg(data: bytes) -> int | None:
    """The last page says how many samples came before its end; Opus counts 48,000 a second."""
    if data[:4] != b"OggS":
        return None
    head = data[:_SEARCHED]
    rate = 48_000 if b"OpusHead" in head else 0
    vorbis = head.find(b"\x01vorbis")
    if not rate and vorbis >= 0:
        (rate,) = struct.unpack_from("<I", data, vorbis + 12)
    (samples,) = struct.unpack_from("<q", data, data.rfind(b"OggS") + 6)
    return int(samples) * 1000 // rate


def _mp3(data: bytes) -> int | None:
    """By the first frame: its count of frames if it has one, else as if all had its bit rate."""
    at = 0
    if data[:3] == b"ID3":
        a, b, c, d = struct.unpack_from("4B", data, 6)
        at = 10 + (a << 21 | b << 14 | c << 7 | d)
    if data[at] != 0xFF or data[at + 1] & 0xE6 != 0xE2:  # a frame's mark, and layer 3
        return None
    version, mono = data[at + 1] >> 3 & 3, data[at + 3] >> 6 == 3
    rate = _RATES[version][data[at + 2] >> 2 & 3] if version in _RATES else 0
    kbits = _LAYER_3[3 if version == 3 else 2][data[at + 2] >> 4]
    side = {(3, True): 17, (3, False): 32, (2, True): 9}.get((version, mono), 9 if mono else 17)
    tag = at + 4 + side
    if data[tag : tag + 4] in (b"Xing", b"Info") and data[tag + 7] & 1:
        (frames,) = struct.unpack_from(">I", data, tag + 8)
        return int(frames) * (1152 if version == 3 else 576) * 1000 // rate
    return _ms(len(data) - at, kbits * 125)


def _ms(size: int, bytes_per_s: int) -> int:
    return -(-size * 1000 // bytes_per_s)


_READERS: tuple[Callable[[bytes], int | None], ...] = (_flac, _mp4, _ogg, _mp3)
