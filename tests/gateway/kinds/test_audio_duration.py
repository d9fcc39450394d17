"""Lengths of sounds: as decoded, with a second for rounding; else there is no bound."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.kinds.audio_duration import AudioDuration, decode_length, duration_of
from gateway.sound.decoded_sound import LONGEST_MS, DecodedSound
from gateway.sound.sound_decoder import DecoderBusyError

SIZE = 75_000  # 100 s at the lowest bit rate of speech, 18.75 s at the usual one


@pytest.mark.parametrize(
    ("decoded", "expected"),
    [
        (DecodedSound(2000, 2000), AudioDuration(2000, 3000, known=True)),
        (DecodedSound(2000, 2031), AudioDuration(2000, 3031, known=True)),
        (DecodedSound(1, LONGEST_MS), AudioDuration(1, LONGEST_MS, known=True)),
        (DecodedSound(0, 0), AudioDuration(18_750, LONGEST_MS, known=False)),
        (None, AudioDuration(101_000, LONGEST_MS, known=False)),
    ],
)
def test_the_length_is_the_decoded_one(
    decoded: DecodedSound | None, expected: AudioDuration
) -> None:
    assert duration_of(SIZE, decoded) == expected


@given(st.integers(0, 1 << 40), st.integers(0, LONGEST_MS), st.integers(0, LONGEST_MS))
def test_the_bound_is_never_below_the_length(size: int, heard_ms: int, beside_ms: int) -> None:
    most_ms = min(heard_ms + beside_ms, LONGEST_MS) if heard_ms else 0
    for decoded in (DecodedSound(heard_ms, most_ms), None):
        found = duration_of(size, decoded)
        assert 0 <= found.ms <= found.bound_ms <= LONGEST_MS
        assert found.bound_ms >= min(most_ms + 1000, LONGEST_MS) or not heard_ms


class BusySounds:
    """A decoder that is never free."""

    async def decode(self, sound: bytes) -> DecodedSound | None:
        raise DecoderBusyError

    async def aclose(self) -> None: ...


def wav(data: bytes, codec: int = 1) -> bytes:
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, codec, 1, 8000, 16_000, 2, 16)
    head += b"data" + struct.pack("<I", len(data))
    return b"RIFF" + struct.pack("<I", len(head) + len(data)) + head + data


async def test_where_no_decoder_is_free_plain_wav_is_as_long_as_its_bytes() -> None:
    found = await decode_length(wav(bytes(32_000)), BusySounds())
    assert found == AudioDuration(2000, 3000, known=True)


@pytest.mark.parametrize("sound", [b"fLaC" + bytes(99), wav(bytes(99), codec=0x161), b""])
async def test_of_any_other_sound_a_busy_decoder_is_a_503_and_no_refusal(sound: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        await decode_length(sound, BusySounds())
    assert (caught.value.row.status, caught.value.retry_after_s) == (503, 5.0)
