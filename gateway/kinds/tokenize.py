"""Conversion of texts to vLLM's tokens and back, on the CPU, without engine time.

Each call is recorded like every request: its row has team, model and engine, no tokens, and no
cost. APIs get no such request.
"""

from collections.abc import Callable
from typing import Final

from backends.answers import AnswerUsage, read_object
from gateway.errors import RequestError
from gateway.http.body import Members, decode_member
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import MODEL, OBJECT, TEXT, answer_schema, list_schema
from gateway.kinds.request_size import refuse_inside
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    KindUnits,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.template_arguments import TEMPLATE_ARGUMENTS, check_template_arguments
from gateway.kinds.text_answers import chat_relay
from gateway.kinds.text_members import NO_FEATURES, media_features, model_of
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, per_unit_bound_pusd
from router.request_kinds import RequestKind
from router.types import RoutingRequest

TOKEN_NUMBER_LIMIT = 2**32


def read_tokenization(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the request from `prompt`, or from `messages` as in a chat."""
    named = [
        name for name in ("prompt", "messages") if bytes(members.get(name, b"null")) != b"null"
    ]
    if len(named) != 1:
        words = "Send `prompt`, a text, or `messages`, and not both."
        raise RequestError("bad_request", words, param=max(named, default="prompt"))
    if named == ["prompt"]:
        decode_member(members, "prompt", str)
    else:
        if not decode_member(members, "messages", list[dict[str, object]]):
            words = "`messages` must be a list with at least one message."
            raise RequestError("bad_request", words, param="messages")
        refuse_inside(bytes(members["messages"]), "messages")
        if media_features(bytes(members["messages"])):
            words = "`messages` may have text alone here: pictures and sounds have no tokens yet."
            raise RequestError("unsupported", words, param="messages")
    return _request("/tokenize", members, body)


def read_detokenization(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the request from `tokens`, a list of token ids."""
    tokens: list[int] | None = decode_member(members, "tokens", list[int])
    if tokens is None or any(not 0 <= token < TOKEN_NUMBER_LIMIT for token in tokens):
        words = "`tokens` is required: a list of numbers of tokens."
        raise RequestError("bad_request", words, param="tokens")
    return _request("/detokenize", members, body)


def _request(path: str, members: Members, body: IncomingBody) -> InferenceRequest:
    refuse_other_spellings(members)
    if TEMPLATE_ARGUMENTS in members:  # the count is of the template that a chat would get
        check_template_arguments(members)
    return InferenceRequest(
        kind=RequestKind.TOKENIZE,
        path=path,
        model=model_of(members),
        stream=False,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=1,
        max_tokens=0,
        prompt_bytes=0,  # no model reads it
        features=NO_FEATURES,
        session=body.session,
        members=members,
        template_arguments=TEMPLATE_ARGUMENTS in members,
    )


def _nothing(_request: RoutingRequest, _output: int = 0) -> TokenCounts:
    return TokenCounts()


def _bound_pusd(price: Price, _request: RoutingRequest, _output_tokens: int) -> int:
    return per_unit_bound_pusd(price)


def _no_usage(_usage: object) -> TokenCounts:
    return TokenCounts()


def _read_answer(body: bytes, _media: str) -> AnswerUsage:
    return read_object(body)


def _path(
    read: Callable[[Members, IncomingBody], InferenceRequest], summary: str, answer: str
) -> KindPath:
    schema: Schema = {
        "type": "object",
        "required": ["model", "tokens"],
        "properties": {
            "model": MODEL,
            "tokens": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "maximum": TOKEN_NUMBER_LIMIT - 1},
            },
        },
        "additionalProperties": True,
    }
    if read is read_tokenization:
        schema = {
            "type": "object",
            "required": ["model"],
            "properties": {"model": MODEL},
            "oneOf": [
                {
                    "required": [sent],
                    "properties": {sent: form, absent: {"type": "null"}},
                }
                for sent, form, absent in (
                    ("prompt", TEXT, "messages"),
                    ("messages", list_schema(OBJECT), "prompt"),
                )
            ],
            "additionalProperties": True,
        }
    return KindPath(
        json_reader(read, (TEMPLATE_ARGUMENTS,)),
        PathDescription(
            summary=summary,
            body=lambda _max_n: schema,
            answer=answer_schema(answer),
            form=False,
            streamed=False,
            texts=False,
        ),
    )


SPEC: Final = RequestKindSpec(
    kind=RequestKind.TOKENIZE,
    paths={
        "/tokenize": _path(read_tokenization, "A text as an own engine's tokens", "tokens"),
        "/detokenize": _path(read_detokenization, "An own engine's tokens as a text", "prompt"),
    },
    usage=_no_usage,
    units=KindUnits(
        estimate=_nothing,
        most=_nothing,
        bound_pusd=_bound_pusd,
        exact=lambda _request: True,
        engine_work=False,
    ),
    relay=chat_relay,  # no target streams it
    read_answer=_read_answer,
    answer_has_text=False,
    generated=False,
    ranked=False,
    prefix_member=None,
    media_member="messages",
    shorten=("prompt", "Send less text."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page=None,
    otel_operation="tokenize",  # the conventions have no name for it
    catalog=CatalogFacts(None),
)
