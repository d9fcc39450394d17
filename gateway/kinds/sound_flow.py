"""Relay of a sound file while it is generated; the last piece waits for the settle.

A file reports no tokens. For prices by the token, they are estimated from the bytes at the lowest
bit rate of speech, so that hardly any answer has more.
"""

from typing import Final

from gateway.kinds.billable_units import BYTES_PER_TOKEN
from gateway.kinds.relay import ByteRelay

TOKENS_PER_S: Final = 25  # Gemini's speech; OpenAI's has 21 (its prices per token and per minute)
# Bytes per second: 24 kHz of 16 bits, and the lowest usual rates of the encoded formats.
BYTES_PER_S: Final = {"pcm": 48_000, "wav": 48_000, "flac": 16_000, "aac": 6_000, "opus": 3_000}
LEAST_BYTES_PER_S: Final = 8_000  # MP3 of 64 kbit/s


def bytes_per_s(form: str) -> int:
    """Return the bytes of a second of speech in the requested format."""
    return BYTES_PER_S.get(form, LEAST_BYTES_PER_S)


def text_of_sound(size: int, per_s: int) -> int:
    """Return the bytes of a text with as many tokens as `size` bytes of sound."""
    return -(-size * TOKENS_PER_S // per_s) * BYTES_PER_TOKEN


class SoundFlow(ByteRelay):
    """The relay of one file; `said_bytes` is a text's size with as many tokens."""

    __slots__ = ("_bytes_per_s", "_last", "_size")

    last_word = b""

    def __init__(self, form: str) -> None:
        """Create the relay; `form` is the requested format."""
        super().__init__(hide_usage=False)
        self._bytes_per_s = bytes_per_s(form)
        self._last = b""
        self._size = 0
        self.spoken = True

    def feed(self, chunk: bytes) -> bytes:
        """Take a piece; return the piece before it."""
        if not chunk:
            return b""
        self._size += len(chunk)
        self.content_events += 1
        self.first_content = self._started = True
        self.said_bytes = text_of_sound(self._size, self._bytes_per_s)
        passed, self._last = self._last, bytes(chunk)
        return passed

    def check_end(self) -> None:
        """Raise `BackendError` if nothing was received."""
        if not self._size:
            raise self._broken_error("the answer has no sound")

    def finish(self) -> bytes:
        """Return the last piece, to be sent once the settle is durable."""
        self.check_end()
        rest, self._last = self._last, b""
        return rest
