"""The request kinds that the simulators serve: one entry a kind, with its paths at each.

A kind with whole answers needs only a `Reader`. Generations and transcripts are paced while they
are written, which each simulator does differently.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from backends.simulator import vectors, words
from backends.simulator.answers import embeddings
from backends.simulator.asgi import Receive, Scope, Send
from backends.simulator.dialect import SimulatedRules, parse_embedding
from backends.simulator.faults import Fault
from backends.simulator.moderation import moderate, parse_moderation
from backends.simulator.pictures import (
    PictureOrder,
    parse_edit,
    parse_pictures,
    picture_answer,
    picture_events,
)
from backends.simulator.ranking import parse_pairs, parse_ranking, rank_documents, score_pairs
from backends.simulator.speech import MEDIA, parse_speech, pieces, speech_events
from backends.simulator.tokens import DETOKENIZE, detokenize, tokenize

EVENTS: Final = "text/event-stream; charset=utf-8"


class SimulatedRoute(NamedTuple):
    """One request to a simulator, and the fault to inject."""

    body: bytes
    scope: Scope
    receive: Receive
    send: Send
    fault: Fault | None = None


class CallSite(NamedTuple):
    """The path of a request. `number` counts served requests for the answers' ids."""

    path: str
    api: bool  # at the simulated provider, not at an engine
    number: Callable[[], str]


class ReadRequest(NamedTuple):
    """A parsed request: its tokens, and a function that makes its answer after their time."""

    tokens: int
    answer: Callable[[], bytes]


Reader = Callable[[bytes, SimulatedRules, CallSite], ReadRequest]


class FlowingAnswer(NamedTuple):
    """An answer that is sent in pieces, and its media type."""

    media: str
    pieces: Iterable[bytes]


FlowingReader = Callable[[bytes, SimulatedRules, CallSite], FlowingAnswer]


class Simulator(Protocol):
    """The ways to serve a request; `SimulatedEngineApp` and `SimulatedProvider` implement it."""

    async def complete(self, call: SimulatedRoute, *, chat: bool) -> None: ...

    async def read(self, call: SimulatedRoute, reader: Reader) -> None: ...

    async def transcribe(self, call: SimulatedRoute) -> None: ...

    async def flow(self, call: SimulatedRoute, reader: FlowingReader) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedKind:
    """A request kind: its paths at engines and at the provider, and whether batches allow it."""

    engine: tuple[str, ...]
    api: tuple[str, ...]
    batched: bool
    serve: Callable[[Simulator, SimulatedRoute], Awaitable[None]]


def read_embeddings(body: bytes, rules: SimulatedRules, _site: CallSite) -> ReadRequest:
    model, inputs, base64 = parse_embedding(body, rules)
    tokens = sum(words.count(entry) for entry in inputs)

    def answer() -> bytes:
        found: list[Any] = [vectors.vector(entry) for entry in inputs]
        if base64:
            found = [vectors.in_base64(entry) for entry in found]
        return embeddings(model, found, tokens)

    return ReadRequest(tokens, answer)


def read_ranking(body: bytes, rules: SimulatedRules, site: CallSite) -> ReadRequest:
    """Return a ranking: with tokens on the first path, with searches on Cohere's second."""
    ranking = parse_ranking(body, rules)
    searches = site.api and site.path == "/v2/rerank"

    def answer() -> bytes:
        number = site.number() if site.api else f"rerank-{site.number()}"
        return rank_documents(ranking, id=number, searches=searches, documents=not site.api)

    return ReadRequest(ranking.tokens, answer)


def read_scores(body: bytes, rules: SimulatedRules, site: CallSite) -> ReadRequest:
    scoring = parse_pairs(body, rules)
    return ReadRequest(scoring.tokens, lambda: score_pairs(scoring, id=f"score-{site.number()}"))


def read_moderation(body: bytes, rules: SimulatedRules, site: CallSite) -> ReadRequest:
    model, inputs = parse_moderation(body, rules)
    tokens = sum(words.count(entry.encode()) for entry in inputs)
    return ReadRequest(tokens, lambda: moderate(model, inputs, id=f"modr-{site.number()}"))


def read_tokenization(body: bytes, rules: SimulatedRules, site: CallSite) -> ReadRequest:
    """Return a tokenization, which takes no time of the engine."""
    answer = detokenize if site.path == DETOKENIZE else tokenize
    return ReadRequest(0, lambda: answer(body, rules))


def read_speech(body: bytes, rules: SimulatedRules, _site: CallSite) -> FlowingAnswer:
    spoken = parse_speech(body, rules)
    if spoken.events:
        return FlowingAnswer(EVENTS, speech_events(spoken))
    return FlowingAnswer(MEDIA[spoken.format], pieces(spoken))


def read_edit(body: bytes, rules: SimulatedRules, _site: CallSite) -> FlowingAnswer:
    return _draw(parse_edit(body, rules))


def read_pictures(body: bytes, rules: SimulatedRules, _site: CallSite) -> FlowingAnswer:
    return _draw(parse_pictures(body, rules))


def _draw(order: PictureOrder) -> FlowingAnswer:
    created = int(time.time())
    if order.stream and order.counts_tokens:
        return FlowingAnswer(EVENTS, picture_events(order, created))
    return FlowingAnswer("application/json", [picture_answer(order, created)])


_CHAT, _COMPLETIONS, _EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
_RANKINGS = ("/v1/rerank", "/v2/rerank")
_SCORES = ("/score", "/v1/score")
_SOUNDS = ("/v1/audio/transcriptions", "/v1/audio/translations")
SIMULATED_KINDS: Final[Mapping[str, SimulatedKind]] = {
    "chat": SimulatedKind(
        engine=(_CHAT,), api=(_CHAT,), batched=True,
        serve=lambda simulator, call: simulator.complete(call, chat=True),
    ),
    "completion": SimulatedKind(
        engine=(_COMPLETIONS,), api=(_COMPLETIONS,), batched=True,
        serve=lambda simulator, call: simulator.complete(call, chat=False),
    ),
    "embedding": SimulatedKind(
        engine=(_EMBEDDINGS,), api=(_EMBEDDINGS,), batched=True,
        serve=lambda simulator, call: simulator.read(call, read_embeddings),
    ),
    "rerank": SimulatedKind(
        engine=("/rerank", *_RANKINGS), api=_RANKINGS, batched=False,
        serve=lambda simulator, call: simulator.read(call, read_ranking),
    ),
    "transcription": SimulatedKind(
        engine=_SOUNDS, api=_SOUNDS, batched=False,
        serve=lambda simulator, call: simulator.transcribe(call),
    ),
    "score": SimulatedKind(
        engine=_SCORES, api=_SCORES, batched=False,
        serve=lambda simulator, call: simulator.read(call, read_scores),
    ),
    "moderation": SimulatedKind(
        engine=(), api=("/v1/moderations",), batched=False,
        serve=lambda simulator, call: simulator.read(call, read_moderation),
    ),
    "tokenize": SimulatedKind(
        engine=("/tokenize", DETOKENIZE), api=(), batched=False,
        serve=lambda simulator, call: simulator.read(call, read_tokenization),
    ),
    "speech": SimulatedKind(
        engine=(), api=("/v1/audio/speech",), batched=False,
        serve=lambda simulator, call: simulator.flow(call, read_speech),
    ),
    "image_generation": SimulatedKind(
        engine=(), api=("/v1/images/generations",), batched=False,
        serve=lambda simulator, call: simulator.flow(call, read_pictures),
    ),
    "image_edit": SimulatedKind(
        engine=(), api=("/v1/images/edits",), batched=False,
        serve=lambda simulator, call: simulator.flow(call, read_edit),
    ),
}  # fmt: skip
ENGINE_ROUTES: Final = {path: kind for kind in SIMULATED_KINDS.values() for path in kind.engine}
API_ROUTES: Final = {path: kind for kind in SIMULATED_KINDS.values() for path in kind.api}
BATCH_ROUTES: Final = {path: kind for path, kind in API_ROUTES.items() if kind.batched}
