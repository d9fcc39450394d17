"""Moderations: classification of texts or pictures by categories of harm.

Most providers state a price of zero. Others charge for tokens.
"""

from typing import Final

import msgspec

from backends.answers import AnswerUsage, read_results
from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode_raw
from gateway.kinds import request_size
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import MODEL, OBJECT, TEXT, answer_schema, list_schema
from gateway.kinds.prompt_bytes import prompt_bytes, rewritten_tokens
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    KindUnits,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_answers import chat_relay
from gateway.kinds.text_members import media_features, model_of, prompt_of, refuse_others
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, bound_pusd
from ledger.prices.rates import TEXT_ALONE
from ledger.unit_usage import tokens_of_reranking
from router.request_kinds import RequestKind
from router.types import Feature, RoutingRequest

DEFAULT_MODEL: Final = "omni-moderation-latest"  # OpenAI's default, if a request names none
INPUTS_LIMIT = 2048


def read_moderation(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the parameter and the fix."""
    if bytes(members.get("model", b"null")) == b"null":
        members["model"] = encode_raw(DEFAULT_MODEL)
    model, text = model_of(members), prompt_of(members, "input")
    refuse_others(members, "input")
    refuse_other_spellings(members)
    _check_inputs(members, text)
    request_size.check({}, text)
    request_size.refuse_inside(text, "input")
    features = media_features(text)
    pictures = request_size.media_parts(text) if Feature.IMAGES in features else 0
    return InferenceRequest(
        kind=RequestKind.MODERATION,
        path="/moderations",
        model=model,
        stream=False,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=1,
        max_tokens=0,
        prompt_bytes=prompt_bytes(members),
        seldom_read_bytes=rewritten_tokens(members),
        features=features,
        session=body.session,
        members=members,
        media_parts=pictures,
        files=pictures,  # of any size: held at a whole context
    )


def _check_inputs(members: Members, text: bytes) -> None:
    if text[:1] == b'"':
        return
    inputs = decode_member(members, "input", list[msgspec.Raw])
    if not inputs or any(bytes(item)[:1] not in (b'"', b"{") for item in inputs):
        words = "`input` must be a text, or a list of texts or of parts."
        raise RequestError("bad_request", words, param="input")
    if len(inputs) > INPUTS_LIMIT:
        words = f"`input` has {len(inputs)} items; one request may have {INPUTS_LIMIT}."
        raise RequestError("bad_request", words, param="input")


def _estimate(request: RoutingRequest, _output: int) -> TokenCounts:
    return TokenCounts(input=request.prompt_tokens)


def _bound_of(request: RoutingRequest) -> TokenCounts:
    return TokenCounts(input=request.prompt_tokens_bound)


def _bound_pusd(price: Price, request: RoutingRequest, output_tokens: int) -> int:
    prompt = request.prompt_tokens_bound
    return bound_pusd(price, prompt_tokens=prompt, output_tokens=output_tokens, media=TEXT_ALONE)


def _read_answer(body: bytes, _media: str) -> AnswerUsage:
    return read_results(body, "results")


def _body(_max_n: int) -> Schema:
    return {
        "type": "object",
        "required": ["input"],
        "properties": {
            "model": {"anyOf": [MODEL, {"type": "null"}]},
            "input": {"anyOf": [TEXT, list_schema({"anyOf": [TEXT, OBJECT]}, INPUTS_LIMIT)]},
        },
        "additionalProperties": True,
    }


SPEC: Final = RequestKindSpec(
    kind=RequestKind.MODERATION,
    paths={
        "/v1/moderations": KindPath(
            json_reader(read_moderation),
            PathDescription(
                summary="Whether texts or pictures are harmful",
                body=_body,
                answer=answer_schema("results"),
                form=False,
                streamed=False,
                texts=False,
            ),
        )
    },
    usage=tokens_of_reranking,
    units=KindUnits(
        estimate=_estimate, most=_bound_of, bound_pusd=_bound_pusd, exact=lambda _request: True
    ),
    relay=chat_relay,  # no target streams it
    read_answer=_read_answer,
    answer_has_text=False,
    generated=False,
    ranked=False,
    prefix_member=None,
    media_member="input",
    shorten=("input", "Send fewer or shorter texts."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page="/usage/moderations",
    otel_operation="moderation",  # the conventions have no name for it
    openinference_kind="GUARDRAIL",
    catalog=CatalogFacts("moderation"),
)
