"""Duration of a sound, for its hold and its booking: prices are by the second.

The duration is measured by a decoder (`gateway.sound`); the file's header is not trusted. Without a
decoded duration there is no bound: a few bytes of FLAC or Opus may hold hours of silence.
"""

from dataclasses import dataclass

from gateway.errors import RequestError
from gateway.sound.decoded_sound import LONGEST_MS, DecodedSound
from gateway.sound.sound_decoder import DecoderBusyError, SoundLengths
from gateway.sound.wav_bytes import wav_lengths

# Opus for voice goes down to 6 kbit/s; MP3 to 8 (RFC 6716 section 2.1, ISO 11172-3).
LEAST_BYTES_PER_S = 750
USUAL_BYTES_PER_S = 4000  # 32 kbit/s, as telephones and browsers record speech
ROUNDED_MS = 1000  # providers count whole seconds
RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class AudioDuration:
    """Milliseconds of a sound: the best estimate and the maximum; `known` if it was decoded."""

    ms: int
    bound_ms: int
    known: bool


def duration_of(size: int, decoded: DecodedSound | None) -> AudioDuration:
    """Return the duration of a file of `size` bytes.

    `decoded` is `None` if decoding crashed or passed its limits. Such a sound is held at the
    longest duration that the ledger books, and counts as speech of the lowest bit rate. A file in
    which the decoder finds no sound is held at the longest duration, too, as its target may know
    another format. WavPack has ten minutes of silence in 4,197 bytes.
    """
    most = min(_ms(size, LEAST_BYTES_PER_S) + ROUNDED_MS, LONGEST_MS)
    if decoded is None:
        return AudioDuration(most, LONGEST_MS, known=False)
    if not decoded.heard_ms:
        return AudioDuration(min(_ms(size, USUAL_BYTES_PER_S), most), LONGEST_MS, known=False)
    bound = min(decoded.most_ms + ROUNDED_MS, LONGEST_MS)
    return AudioDuration(decoded.heard_ms, bound, known=True)


async def decode_length(sound: bytes, sounds: SoundLengths) -> AudioDuration:
    """Return the duration of a sound by decoding it.

    If no decoder is free, uncompressed WAV gets the duration of its bytes. Raises `RequestError`
    (503) for any other sound then, since even a budget with headroom would refuse the longest
    duration.
    """
    try:
        decoded = await sounds.decode(sound)
    except DecoderBusyError:
        lengths_ms = wav_lengths(sound).formats_ms
        if not lengths_ms:
            raise RequestError(
                "overloaded",
                "All audio decoders are busy. Retry in a few seconds.",
                retry_after_s=RETRY_S,
            ) from None
        most_ms = min(max(lengths_ms), LONGEST_MS)
        decoded = DecodedSound(max(most_ms, 1), max(most_ms, 1))
    return duration_of(len(sound), decoded)


def _ms(size: int, bytes_per_s: int) -> int:
    return -(-size * 1000 // bytes_per_s)
