"""Tokens of sound, for targets that count sound in tokens, and the longest known token."""

from router.prompts import RequestUnits

BYTES_PER_TOKEN = 4
LONGEST_TOKEN_BYTES = 128  # a run of blanks, in OpenAI's vocabularies
# OpenAI counts ten tokens per second of sound, Gemini 32; Whisper's encoder has 50.
AUDIO_MS_PER_TOKEN, AUDIO_MS_PER_TOKEN_LEAST = 100, 20
# Ultravox counts six per second, and half of a sound may be silence that is left out.
AUDIO_MS_PER_TOKEN_MOST = 400


def sound_tokens(extent: RequestUnits) -> tuple[int, int]:
    """Return the request's sound tokens (estimate, maximum), for prices by the token."""
    return (
        -(-extent.audio_ms // AUDIO_MS_PER_TOKEN),
        -(-extent.audio_ms_bound // AUDIO_MS_PER_TOKEN_LEAST),
    )
