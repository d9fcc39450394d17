"""Requests that are no conversation: documents to rank, sound to write down.

What is read is what decides where they go and what they may cost at most: how often the query is
read (with every document), how long the sound lasts. Everything else is between client and target.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members, member, open_members
from gateway.http.forms import FILE, Form, open_form
from gateway.intake import Asked, media_of, model_of, plain_model
from gateway.limits import asks
from gateway.limits.caps import media_parts, refuse_inside
from gateway.measured.durations import duration_of
from router.prompts import Extent
from router.request_kinds import Kind
from router.types import Feature

DOCUMENTS_LIMIT = 10_000  # the most that a provider takes; Cohere's own limit (2026-11)
# Cohere: up to 100 documents are a search; one that is longer than 500 tokens with its query is
# several of them (its pricing page, 2026-11). A query takes at most half of that.
SEARCH_DOCUMENTS = 100
CHUNK_TOKENS, CHUNK_TOKENS_LEAST = 500, 250
BYTES_PER_TOKEN = 4
# OpenAI counts ten tokens a second of sound, Gemini 32, Whisper's encoder sees 50. Speech itself
# is some four tokens a second; Whisper writes at most 448 in half a minute.
AUDIO_MS_PER_TOKEN, AUDIO_MS_PER_TOKEN_LEAST = 100, 20
SPOKEN_TOKENS_PER_S = 20
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_SWITCHED = ("stream_include_usage", "stream_continuous_usage_stats")


@dataclass(frozen=True, slots=True)
class Arrived:
    """A body as it came."""

    text: bytes
    content_type: str
    session: str | None


@dataclass(frozen=True, slots=True)
class Reader:
    """How a path's body is read; `media_type` is what it must say of itself."""

    read: Callable[[Arrived], Asked]
    media_type: str
    fix: str


def read_reranking(arrived: Arrived) -> Asked:
    """`query` and `documents` in the shape that vLLM, Jina and Cohere share."""
    members = open_members(arrived.text)
    model, query = model_of(members), _query(members)
    documents = member(members, "documents", list[msgspec.Raw])
    if not documents:
        words = "`documents` is required: a list of texts, or of objects with a `text`."
        raise RequestError("bad_request", words, param="documents")
    if len(documents) > DOCUMENTS_LIMIT:
        words = f"`documents` has {len(documents)} items; one request may have {DOCUMENTS_LIMIT}."
        raise RequestError("bad_request", words, param="documents")
    top_n: int | None = member(members, "top_n", int)
    if top_n is not None and top_n < 0:
        raise RequestError("bad_request", "`top_n` must not be negative.", param="top_n")
    for name, text in (("query", query), ("documents", bytes(members["documents"]))):
        refuse_inside(text, name)
    sizes = [len(bytes(document)) for document in documents]
    features = media_of(query + bytes(members["documents"]))
    return Asked(
        kind=Kind.RERANK,
        path="/rerank",
        model=model,
        stream=False,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=1,
        max_tokens=0,
        # The quotes and commas of each are more than the marks that a model sets between both.
        prompt_bytes=(len(query) + 3) * len(documents) + sum(sizes),
        features=features,
        session=arrived.session,
        members=members,
        extent=_extent_of(len(query), sizes),
        media_parts=media_parts(bytes(members["documents"])) if Feature.IMAGES in features else 0,
    )


def read_transcription(arrived: Arrived) -> Asked:
    return _read_sound("/audio/transcriptions", arrived)


def read_translation(arrived: Arrived) -> Asked:
    return _read_sound("/audio/translations", arrived)


def sound_tokens(extent: Extent) -> tuple[int, int]:
    """What its sound comes to in tokens, estimated and at most, where tokens are charged."""
    return (
        -(-extent.audio_ms // AUDIO_MS_PER_TOKEN),
        -(-extent.audio_ms_bound // AUDIO_MS_PER_TOKEN_LEAST),
    )


def _query(members: Members) -> bytes:
    """A text; Jina's and vLLM's models of pictures take an object."""
    query = bytes(members.get("query", b"null"))
    if query[:1] not in (b'"', b"{") or query == b'""':
        raise RequestError("bad_request", "`query` is required: a text.", param="query")
    return query


def _extent_of(query: int, sizes: list[int]) -> Extent:
    each = [query + size for size in sizes]
    read = CHUNK_TOKENS * BYTES_PER_TOKEN - min(query, CHUNK_TOKENS_LEAST * BYTES_PER_TOKEN)
    chunks = sum(-(-size // read) for size in sizes)
    most = sum(-(-size // CHUNK_TOKENS_LEAST) for size in sizes)
    return Extent(
        longest=max(each) / sum(each),
        searches=-(-chunks // SEARCH_DOCUMENTS),
        searches_bound=-(-most // SEARCH_DOCUMENTS),
    )


def _read_sound(path: str, arrived: Arrived) -> Asked:
    form = open_form(arrived.text, arrived.content_type)
    model = plain_model(form.field("model"))
    sound = _sound(form)
    for name in _SWITCHED:
        _flag(form, name)
    if _flag(form, "use_beam_search"):
        raise asks.refused("use_beam_search")
    lasts = duration_of(sound)
    return Asked(
        kind=Kind.TRANSCRIPTION,
        path=path,
        model=model,
        stream=_flag(form, "stream"),
        wants_usage=True,
        wants_running_usage=True,
        prompts=1,
        n=1,
        max_tokens=-(-lasts.bound_ms * SPOKEN_TOKENS_PER_S // 1000),
        prompt_bytes=len((form.field("prompt") or "").encode()),
        features=frozenset(),
        session=arrived.session,
        members={},
        form=form,
        extent=Extent(
            longest=0.0,
            audio_ms=lasts.ms,
            audio_ms_bound=lasts.bound_ms,
            audio_known=lasts.known,
        ),
    )


def _sound(form: Form) -> bytes:
    found = form.parts.get(FILE)
    if not found or not found[0].is_file:
        words = "`file` is required: the sound itself, sent as a file with its name."
        raise RequestError("bad_request", words, param=FILE)
    sound = form.file()
    if not sound:
        raise RequestError("bad_request", "`file` is empty.", param=FILE)
    return sound


def _flag(form: Form, name: str) -> bool:
    value = form.field(name)
    if value is not None and value.lower() not in _FLAGS:
        raise RequestError("bad_request", f"`{name}` must be `true` or `false`.", param=name)
    return value is not None and _FLAGS[value.lower()]


RANKING: Final = Reader(read_reranking, "json", "Send the body as `application/json`.")
_FORM_FIX = "Send the sound as `multipart/form-data`, with the parts `file` and `model`."
READERS: Final[Mapping[str, Reader]] = {
    "/v1/rerank": RANKING,
    "/v2/rerank": RANKING,
    "/rerank": RANKING,
    "/v1/audio/transcriptions": Reader(read_transcription, "multipart/form-data", _FORM_FIX),
    "/v1/audio/translations": Reader(read_translation, "multipart/form-data", _FORM_FIX),
}
