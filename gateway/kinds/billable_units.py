"""Units that are billed: tokens of sound, the longest known token, and least lengths of a sound."""

from typing import Final

from msgspec.structs import replace

from ledger.journals.records import TokenCounts
from ledger.prices.book import Price
from router.prompts import RequestUnits

BYTES_PER_TOKEN = 4
LONGEST_TOKEN_BYTES = 128  # a run of blanks, in OpenAI's vocabularies
# OpenAI counts ten tokens per second of sound, Gemini 32; Whisper's encoder has 50.
AUDIO_MS_PER_TOKEN, AUDIO_MS_PER_TOKEN_LEAST = 100, 20
# Ultravox counts six per second, and half of a sound may be silence that is left out.
AUDIO_MS_PER_TOKEN_MOST = 400
# Providers that bill a short sound as a longer one, as they document it (2026-11).
LEAST_BILLED_MS: Final = {"groq": 10_000}


def sound_tokens(extent: RequestUnits) -> tuple[int, int]:
    """Return the request's sound tokens (estimate, maximum), for prices by the token."""
    return (
        -(-extent.audio_ms // AUDIO_MS_PER_TOKEN),
        -(-extent.audio_ms_bound // AUDIO_MS_PER_TOKEN_LEAST),
    )


def billed_ms(price: Price, lasts_ms: int) -> int:
    """Return the length that a sound is billed as, where the price is by the second."""
    least = LEAST_BILLED_MS.get(price.name.partition("/")[0], 0)
    return max(lasts_ms, least) if lasts_ms and price.terms.second_pusd else lasts_ms


def billed_counts(tokens: TokenCounts, price: Price | None) -> TokenCounts:
    """Return the counts with the billed length of the sound."""
    if price is None or billed_ms(price, tokens.audio_ms) == tokens.audio_ms:
        return tokens
    return replace(tokens, audio_ms=billed_ms(price, tokens.audio_ms))
