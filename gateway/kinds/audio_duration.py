"""The length of a sound for its hold and its booking: prices are by the second.

The length is what a decoder hears (`gateway.sound`), never what a file's head states. Without a
decoded length there is no bound: a few bytes of FLAC or Opus may hold hours of silence.
"""

from dataclasses import dataclass

from gateway.sound.decoded_sound import LONGEST_MS, DecodedSound

# Opus for voice goes down to 6 kbit/s; MP3 to 8 (RFC 6716 section 2.1, ISO 11172-3).
LEAST_BYTES_PER_S = 750
USUAL_BYTES_PER_S = 4000  # 32 kbit/s, as telephones and browsers record speech
ROUNDED_MS = 1000  # providers count whole seconds


@dataclass(frozen=True, slots=True)
class AudioDuration:
    """Milliseconds: the best estimate, and the maximum. `known`: the sound was decoded."""

    ms: int
    bound_ms: int
    known: bool


def duration_of(size: int, decoded: DecodedSound | None) -> AudioDuration:
    """Return the length of a file of `size` bytes.

    `decoded` is `None` if decoding crashed or passed its limits. Such a sound is held at the most
    that the ledger books, and counts as long as speech of the lowest bit rate. A file in which the
    decoder finds no sound is held at that length, too.
    """
    most = min(_ms(size, LEAST_BYTES_PER_S) + ROUNDED_MS, LONGEST_MS)
    if decoded is None:
        return AudioDuration(most, LONGEST_MS, known=False)
    if not decoded.heard_ms:
        return AudioDuration(min(_ms(size, USUAL_BYTES_PER_S), most), most, known=False)
    bound = min(decoded.most_ms + ROUNDED_MS, LONGEST_MS)
    return AudioDuration(decoded.heard_ms, bound, known=True)


def _ms(size: int, bytes_per_s: int) -> int:
    return -(-size * 1000 // bytes_per_s)
