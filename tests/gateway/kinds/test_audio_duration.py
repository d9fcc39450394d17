"""Lengths of sounds: exact where the bytes say so, believed where a head says so, never short."""

import io
import struct
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine import silence
from gateway.kinds.audio_duration import LEAST_BYTES_PER_S, LONGEST_MS, duration_of

ODD_MS = 12_345


def written(seconds: float, *, rate: int = 8000, channels: int = 2, width: int = 2) -> bytes:
    """As the standard library writes it."""
    target = io.BytesIO()
    with wave.open(target, "wb") as opened:
        opened.setnchannels(channels)
        opened.setsampwidth(width)
        opened.setframerate(rate)
        opened.writeframes(bytes(round(seconds * rate) * channels * width))
    return target.getvalue()


def flac(ms: int) -> bytes:
    packed = 16_000 << 44 | 0 << 41 | 15 << 36 | ms * 16
    return b"fLaC\0\0\0\x22" + bytes(10) + struct.pack(">Q", packed) + bytes(900)


def mp4(ms: int, version: int = 0) -> bytes:
    times = struct.pack(">IQQIQ", 1 << 24, 0, 0, 1000, ms) if version else struct.pack(
        ">IIIII", 0, 0, 0, 1000, ms
    )  # fmt: skip
    return b"\0\0\0\x18ftypM4A " + bytes(12) + b"\0\0\0\x6cmoov\0\0\0\x6cmvhd" + times + bytes(99)


def ogg(ms: int, head: bytes) -> bytes:
    page = b"OggS\0\2" + bytes(22)
    rate = 48 if b"Opus" in head else 16
    return page + head + bytes(500) + b"OggS\0\4" + struct.pack("<q", ms * rate) + bytes(50)


def mp3(kbits_index: int = 9, *, xing: int | None = None, tag: bool = False) -> bytes:
    """MPEG-1 layer 3, 44.1 kHz, stereo; index 9 is 128 kbit/s."""
    side = bytes(32)
    frame = bytes((0xFF, 0xFB, kbits_index << 4, 0x40)) + side
    frame += b"Xing" + struct.pack(">II", 1, xing) if xing is not None else b""
    named = b"ID3\4\0\0" + bytes((0, 0, 1, 0)) + bytes(128) if tag else b""
    return named + frame + bytes(16_000 * 3 - len(frame))


@pytest.mark.parametrize("seconds", [0.1, 2.5, 61.0])
def test_uncompressed_sound_is_as_long_as_its_bytes(seconds: float) -> None:
    for data in (silence.wav(seconds), written(seconds), written(seconds, width=1, channels=1)):
        found = duration_of(data)
        assert (found.ms, found.known) == (round(seconds * 1000), True)
        assert found.bound_ms == found.ms + 1000


def test_a_head_that_lies_about_its_length_is_not_believed() -> None:
    honest = silence.wav(30.0)
    lying = honest[:40] + struct.pack("<I", 16) + honest[44:]
    assert duration_of(lying) == duration_of(honest)


def test_compressed_sound_in_a_wav_is_not_taken_for_samples() -> None:
    telephone = bytearray(silence.wav(4.0))
    telephone[20:22] = struct.pack("<H", 49)  # GSM
    assert not duration_of(bytes(telephone)).known


@pytest.mark.parametrize(
    "data",
    [
        flac(ODD_MS), mp4(ODD_MS), mp4(ODD_MS, 1), ogg(ODD_MS, b"OpusHead"),
        ogg(ODD_MS, b"\1vorbis" + struct.pack("<IBI", 0, 1, 16_000)),
    ],
)  # fmt: skip
def test_a_head_that_states_a_length_is_an_estimate(data: bytes) -> None:
    found = duration_of(data)
    assert (found.ms, found.known) == (ODD_MS, True)
    assert found.bound_ms >= max(found.ms, len(data) * 1000 // LEAST_BYTES_PER_S)


def test_mp3_by_its_count_of_frames_or_by_its_rate() -> None:
    assert duration_of(mp3()).ms == 3000
    assert duration_of(mp3(tag=True)).ms == 3000
    assert duration_of(mp3(xing=1000)).ms == 1000 * 1152 * 1000 // 44_100
    assert not duration_of(mp3(15)).known  # no such rate


def test_of_other_files_the_bytes_are_all_there_is() -> None:
    found = duration_of(b"\x1a\x45\xdf\xa3" + bytes(39_996))
    assert (found.ms, found.known) == (10_000, False)
    assert found.bound_ms == 40_000 * 1000 // LEAST_BYTES_PER_S + 1 + 1000


def test_a_compressed_file_is_bounded_by_its_bytes_whatever_it_states() -> None:
    """A head is the sender's: what it states too short must not make a budget's hold too small."""
    data = flac(10) + bytes(75_000)
    assert duration_of(data).bound_ms > 100_000


def test_a_wav_of_empty_chunks_is_not_walked_to_its_end() -> None:
    assert not duration_of(b"RIFF____WAVE" + b"junk\0\0\0\0" * 1_000_000).known


HEADS = [b"", b"RIFF____WAVEfmt ", b"fLaC", b"OggS", b"____ftyp", b"ID3", b"\xff\xfb\x90\x40"]


@given(st.binary(max_size=300), st.sampled_from(HEADS))
def test_any_bytes_have_a_length(rest: bytes, head: bytes) -> None:
    found = duration_of(head + rest)
    assert 0 <= found.ms <= found.bound_ms <= LONGEST_MS
