"""Scores of vLLM: how well two texts fit, one text with many or pair by pair.

There are four pairs of member names. How often each text is read decides the route and the maximum
cost.
"""

from typing import Final

import msgspec

from backends.answers import AnswerUsage, read_ranking
from gateway.errors import RequestError
from gateway.http.body import Members, decode_member
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import MODEL, OBJECT, TEXT, list_schema
from gateway.kinds.pair_units import (
    MARK_BYTES,
    PAIR_UNITS,
    PAIRS_LIMIT,
    bytes_beside,
    extent_of_pairs,
    media_of_pairs,
    spelled_pairs,
)
from gateway.kinds.request_size import media_parts, refuse_inside
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_answers import chat_relay
from gateway.kinds.text_members import media_features, model_of
from ledger.unit_usage import tokens_of_reranking
from router.request_kinds import RequestKind
from router.types import Feature

# vLLM takes the first complete pair in this order (vllm 0.32, pooling/score/protocol.py).
NAMES: Final = (
    ("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"),
)  # fmt: skip
_EVERY_NAME: Final = frozenset(name for pair in NAMES for name in pair)


def read_scores(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the request from two sides: one text with each of a list, or two equal lists."""
    refuse_other_spellings(members)
    model, (first, second) = model_of(members), _names_of(members)
    lefts, rights = _texts(members, first), _texts(members, second)
    left, right = [[len(bytes(text)) for text in side] for side in (lefts, rights)]
    if len(left) not in (1, len(right)):
        words = f"`{first}` has {len(left)} items and `{second}` {len(right)}: send one, or as many"
        raise RequestError("bad_request", f"{words}.", param=first)
    text = bytes(members[first]) + bytes(members[second])
    for name in (first, second):
        refuse_inside(bytes(members[name]), name)
    beside = MARK_BYTES + bytes_beside(members, frozenset(("model", first, second)))
    first_media = media_of_pairs(b"", lefts)
    if len(left) == 1:
        extent, media = extent_of_pairs(left[0], right), media_of_pairs(bytes(lefts[0]), rights)
    else:
        media = media_of_pairs(b"", [*lefts, *rights])
        extent = extent_of_pairs(0, [sum(pair) for pair in zip(left, right, strict=True)])
    features = media_features(text)
    by_first = media_features(bytes(members[first])) | first_media.features
    return InferenceRequest(
        kind=RequestKind.SCORE,
        path="/score",
        model=model,
        stream=False,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=1,
        max_tokens=0,
        prompt_bytes=(left[0] * len(right) if len(left) == 1 else sum(left))
        + sum(right)
        + beside * len(right),
        seldom_read_bytes=spelled_pairs(
            bytes(members[first]),
            bytes(members[second]),
            repeats=len(right) if len(left) == 1 else 1,
        ),
        features=features | media.features,
        asked_by={
            feature: first if feature in by_first else second
            for feature in features | media.features
        },
        session=body.session,
        members=members,
        extent=extent,
        media_parts=media_parts(text) if Feature.IMAGES in features else 0,
        files=media.files,
    )


def _names_of(members: Members) -> tuple[str, str]:
    """Return the two members with the pairs. Raises `RequestError` for other combinations."""
    named = {name for name in _EVERY_NAME if bytes(members.get(name, b"null")) != b"null"}
    for first, second in NAMES:
        if named == {first, second}:
            return first, second
    words = "Send `text_1` and `text_2`, or `queries` and `documents`, and no further texts."
    raise RequestError("bad_request", words, param=min(named, default="text_1"))


def _texts(members: Members, name: str) -> list[msgspec.Raw]:
    """Return a member's encoded texts; it may be a text, an object, or a list of these."""
    value = bytes(members[name])
    if value[:1] != b"[":
        if value[:1] not in (b'"', b"{") or value == b'""':
            raise RequestError("bad_request", f"`{name}` must be a text or a list.", param=name)
        return [msgspec.Raw(value)]
    listed: list[msgspec.Raw] | None = decode_member(members, name, list[msgspec.Raw])
    if not listed:
        raise RequestError("bad_request", f"`{name}` must not be an empty list.", param=name)
    if len(listed) > PAIRS_LIMIT:
        words = f"`{name}` has {len(listed)} items; one request may have {PAIRS_LIMIT}."
        raise RequestError("bad_request", words, param=name)
    return listed


def _read_answer(body: bytes, _media: str) -> AnswerUsage:
    return read_ranking(body)


def _body(_max_n: int) -> Schema:
    text: Schema = {"anyOf": [{"type": "string", "minLength": 1}, OBJECT]}
    side: Schema = {"anyOf": [*text["anyOf"], list_schema({"anyOf": [TEXT, OBJECT]}, PAIRS_LIMIT)]}
    return {
        "type": "object",
        "required": ["model"],
        "properties": {"model": MODEL},
        "oneOf": [
            {
                "required": [first, second],
                "properties": {
                    name: side if name in (first, second) else {"type": "null"}
                    for name in sorted(_EVERY_NAME)
                },
            }
            for first, second in NAMES
        ],
        "additionalProperties": True,
    }


_PATH = KindPath(
    json_reader(read_scores),
    PathDescription(
        summary="Scores of pairs of texts",
        body=_body,
        answer={"type": "object", "required": ["data"]},
        form=False,
        streamed=False,
        texts=False,
    ),
)
SPEC: Final = RequestKindSpec(
    kind=RequestKind.SCORE,
    paths={"/v1/score": _PATH, "/score": _PATH},
    usage=tokens_of_reranking,
    units=PAIR_UNITS,
    relay=chat_relay,  # no target streams scores
    read_answer=_read_answer,
    answer_has_text=False,
    generated=False,
    ranked=True,
    prefix_member=None,
    media_member="text_2",
    shorten=("text_2", "Send fewer or shorter texts."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page=None,
    otel_operation="score",  # the conventions have no name for it
    openinference_kind="RERANKER",
    catalog=CatalogFacts("rerank"),
)
