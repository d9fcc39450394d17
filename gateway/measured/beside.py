"""What rerankings and transcriptions may use and cost beside tokens: searches, seconds of sound.

An API charges for one or the other, and its price says which; all are estimated and bounded, so
that whichever is listed can be multiplied.
"""

from gateway.measured.requests import sound_tokens
from ledger.journals.records import Tokens
from ledger.prices.book import Price, beside_bound_pusd, bound_pusd
from router.prompts import Extent
from router.request_kinds import Kind
from router.types import Request


def estimated(request: Request, *, output: int = 0) -> Tokens:
    """What the request is expected to use, in every unit that may be charged."""
    extent = request.extent or Extent()
    audio, _ = sound_tokens(extent)
    return Tokens(
        input=max(0, request.prompt_tokens - audio) if request.kind is Kind.RERANK else 0,
        audio_input=audio,
        output=output if request.kind is Kind.TRANSCRIPTION else 0,
        audio_ms=extent.audio_ms,
        searches=extent.searches,
    )


def bound(price: Price, request: Request, output_tokens: int) -> int:
    """The most that an API can charge for it, in pico-USD."""
    extent = request.extent or Extent()
    tokens_pusd = bound_pusd(
        price,
        prompt_tokens=request.prompt_tokens_bound,
        output_tokens=output_tokens,
        audio=request.kind is Kind.TRANSCRIPTION,
    )
    beside_pusd = beside_bound_pusd(
        price, audio_ms=extent.audio_ms_bound, searches=extent.searches_bound
    )
    if request.kind is Kind.TRANSCRIPTION:  # by the one or by the other
        return max(tokens_pusd, beside_pusd)
    return tokens_pusd + beside_pusd


def most(request: Request) -> Tokens:
    extent = request.extent or Extent()
    _, audio = sound_tokens(extent)
    return Tokens(
        input=request.prompt_tokens_bound if request.kind is Kind.RERANK else 0,
        audio_input=audio,
        output=request.max_tokens or 0,
        audio_ms=extent.audio_ms_bound,
        searches=extent.searches_bound,
    )
