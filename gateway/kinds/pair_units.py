"""Units of kinds that read texts in pairs: a query with each document, or pairs to score.

Targets charge for tokens or for searches, and every pair is read separately.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.http.body import Members
from gateway.kinds.billable_units import BYTES_PER_TOKEN
from gateway.kinds.input_media import NO_MEDIA, InputMedia, media_of_inputs
from gateway.kinds.prompt_bytes import prompt_bytes
from gateway.kinds.rewritten_text import spelled_bytes
from gateway.kinds.spec import KindUnits
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, bound_pusd, units_bound_pusd
from ledger.prices.rates import TEXT_ALONE
from router.prompts import RequestUnits
from router.types import RoutingRequest

PAIRS_LIMIT = 10_000  # highest limit of any provider: Cohere's (2026-11)
# Cohere: up to 100 documents are one search. A document of more than 500 tokens with its query
# counts as several (its pricing page, 2026-11). A query takes at most half of that.
SEARCH_DOCUMENTS = 100
CHUNK_TOKENS, CHUNK_TOKENS_LEAST = 500, 250
MARK_BYTES = 3  # a text's quotes and comma: more than a model's separators
# The beginning of an encoded input that may be a file; escapes may replace any of it.
_MAY_BE_FILE: Final = re.compile(
    rb'\A\s*(?:\{|"\s*(?:data:|[a-z][a-z0-9+.-]*://|files/)|"[^"\\]{0,16}\\)', re.IGNORECASE
)
# Counted by `media_parts`.
_COUNTED: Final = frozenset(("image_url", "video_url", "audio_url", "input_audio"))
_TEXTS: Final = (b'"', b"[", b"{")  # the beginnings of values that may hold text


def extent_of_pairs(query: int, sizes: Sequence[int]) -> RequestUnits:
    """Return the units of one query of `query` bytes with documents of these sizes in bytes."""
    each = [query + size for size in sizes]
    read = CHUNK_TOKENS * BYTES_PER_TOKEN - min(query, CHUNK_TOKENS_LEAST * BYTES_PER_TOKEN)
    chunks = sum(-(-size // read) for size in sizes)
    most = sum(-(-size // CHUNK_TOKENS_LEAST) for size in sizes)
    return RequestUnits(
        longest=max(each) / sum(each),
        searches=-(-chunks // SEARCH_DOCUMENTS),
        searches_bound=-(-most // SEARCH_DOCUMENTS),
    )


def media_of_pairs(query: bytes, documents: Sequence[msgspec.Raw]) -> InputMedia:
    """Return the media that a multimodal model opens; those of the query once per document."""
    found, asked = NO_MEDIA, NO_MEDIA
    if any(_MAY_BE_FILE.search(memoryview(document)) for document in documents):
        found = media_of_inputs((msgspec.json.decode(item) for item in documents), _COUNTED)
    if _MAY_BE_FILE.search(query):
        asked = media_of_inputs([msgspec.json.decode(query)])
    return InputMedia(found.features | asked.features, found.files + asked.files * len(documents))


def bytes_beside(members: Members, taken: frozenset[str]) -> int:
    """Return the bytes of vendors' members that a model may read with each pair.

    `taken` are the members with the pairs.
    """
    texts = {
        name: value
        for name, value in members.items()
        if name not in taken and bytes(memoryview(value)[:1]) in _TEXTS
    }
    return prompt_bytes(texts)


def spelled_pairs(first: bytes, second: bytes, *, repeats: int) -> int:
    """Return the bytes that a normaliser may add to pairs; `first` is read `repeats` times."""
    return spelled_bytes(first) * repeats + spelled_bytes(second)


def _estimate(request: RoutingRequest, _output: int) -> TokenCounts:
    extent = request.extent or RequestUnits()
    return TokenCounts(input=request.prompt_tokens, searches=extent.searches)


def _bound_of(request: RoutingRequest) -> TokenCounts:
    extent = request.extent or RequestUnits()
    return TokenCounts(
        input=request.prompt_tokens_bound,
        output=request.max_tokens or 0,
        searches=extent.searches_bound,
    )


def _bound_pusd(price: Price, request: RoutingRequest, output_tokens: int) -> int:
    """Return the maximum charge, for tokens and for searches."""
    extent, prompt = request.extent or RequestUnits(), request.prompt_tokens_bound
    tokens_pusd = bound_pusd(
        price, prompt_tokens=prompt, output_tokens=output_tokens, media=TEXT_ALONE
    )
    return tokens_pusd + units_bound_pusd(price, searches=extent.searches_bound)


PAIR_UNITS: Final = KindUnits(
    estimate=_estimate, most=_bound_of, bound_pusd=_bound_pusd, exact=lambda _request: True
)
