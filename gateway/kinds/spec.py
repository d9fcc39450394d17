"""`RequestKindSpec`, one entry of the registry of request kinds."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from backends.answers import AnswerUsage
from gateway.kinds.billable_units import billed_counts
from gateway.kinds.inference_request import BodyReader, InferenceRequest
from gateway.kinds.relay import ByteRelay
from gateway.sound.sound_decoder import SoundLengths
from ledger.journals.records import TokenCounts
from ledger.prices.book import STANDARD, Price, PriceTerms, cost_pusd
from router.request_kinds import RequestKind
from router.types import RoutingRequest

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathDescription:
    """A path in the OpenAPI document; `body` takes the maximum number of answers per request."""

    summary: str
    body: Callable[[int], Schema]
    answer: Schema
    form: bool  # the body is a form in place of JSON
    streamed: bool  # the answer may be a stream of events
    texts: bool  # the answer may be plain text or subtitles
    media: str = "application/json"  # of the answer in one piece


@dataclass(frozen=True, slots=True)
class KindPath:
    """A path to which clients send requests of a kind."""

    reader: BodyReader
    described: PathDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class KindUnits:
    """Units besides tokens that targets charge for: searches, seconds of sound and others.

    A price lists one unit or the other, so all of them are estimated and bounded. Without
    `engine_work`, a request takes no GPU time of an engine.
    """

    estimate: Callable[[RoutingRequest, int], TokenCounts]  # with so many tokens of output
    most: Callable[[RoutingRequest], TokenCounts]
    bound_pusd: Callable[[Price, RoutingRequest, int], int]  # with at most so many tokens of output
    exact: Callable[[RoutingRequest], bool]  # whether the estimate is what the target counts, too
    engine_work: bool = True
    # The tier of a price in which the request is charged, by the answer's usage.
    tier: Callable[[PriceTerms, RoutingRequest, Mapping[str, Any]], str] | None = None

    def tier_of(
        self, price: Price, request: RoutingRequest, usage: Mapping[str, Any] | None = None
    ) -> str:
        """Return the tier in which a request is charged; `usage` is None before its answer."""
        return STANDARD if self.tier is None else self.tier(price.terms, request, usage or {})

    def cost_pusd(self, tokens: TokenCounts, price: Price, request: RoutingRequest) -> int:
        """Return the cost of the units, in the requested tier."""
        billed = billed_counts(tokens, price)
        return cost_pusd(billed, price, tier=self.tier_of(price, request))


class EqualAnswers(StrEnum):
    """Rule for whether equal requests may share an answer.

    `IF_SAME` allows it for requests for one answer that are deterministic or accept any answer.
    """

    NEVER = "never"
    IF_SAME = "if_same"
    ALWAYS = "always"


class CatalogFacts(NamedTuple):
    """Values of model lists for targets that serve a kind.

    `mode` is LiteLLM's name of the kind, if any. `takes` and `gives` are OpenAI's names of input
    and output media. `sees`: pictures are input, too, at targets that accept them. `price` is the
    price book's term by which only this kind is charged, if any.
    """

    mode: str | None
    takes: str = "text"
    gives: str | None = None
    sees: bool = False
    price: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKindSpec:
    """Properties of one request kind, except those in `router.request_kinds.KIND_TRAITS`.

    Code outside the registries does not compare kinds. If it treats a kind differently, it reads a
    field of this class.
    """

    kind: RequestKind
    paths: Mapping[str, KindPath]
    # Tokens of an answer, from the target's usage; raises `UsageError` if impossible.
    usage: Callable[[Mapping[str, Any]], TokenCounts]
    units: KindUnits | None  # None: only tokens
    relay: Callable[[InferenceRequest, bool], ByteRelay]  # of a stream; True: from an own engine
    # Usage of an answer in one piece, by its media type; None: that of a chat completion.
    read_answer: Callable[[bytes, str], AnswerUsage] | None
    answer_has_text: bool  # an answer without usage is estimated from its text
    generated: bool  # generated token by token: the head of an unstreamed answer comes with its end
    ranked: bool  # its input counts as `ranked` in the metrics
    prefix_member: str | None  # the member whose prefix an engine may have cached
    media_member: str  # the member with pictures and sound
    shorten: tuple[str, str] | None  # the member to make smaller, and the advice; None: chat's
    equal_answers: EqualAnswers  # whether equal requests may share an answer
    sampled: bool  # its answers may be compared with a baseline, to detect drift
    batched: bool  # allowed in files of the Batch API
    usage_page: str | None  # the page of OpenAI's usage API that counts it
    otel_operation: str  # `gen_ai.operation.name`
    catalog: CatalogFacts
    # Completes a request from its file's content; None: nothing is decoded.
    measure: Callable[[InferenceRequest, SoundLengths], Awaitable[InferenceRequest]] | None = None
    # The relay of an answer that is a file, sent while it is generated; None: there is none.
    flow: Callable[[InferenceRequest], ByteRelay] | None = None
    # Converts an answer in one piece to the requested stream's events; None: it stays whole.
    as_events: Callable[[bytes], bytes] | None = None
    # Adds booked usage to an answer in one piece without usage; None: it stays unchanged.
    tell_usage: Callable[[bytes, TokenCounts], bytes] | None = None
    # Returns an answer in one piece in the form that the request asks for; None: it is so already.
    as_asked: Callable[[InferenceRequest, bytes], bytes] | None = None
    openinference_kind: str = "LLM"  # `openinference.span.kind`
