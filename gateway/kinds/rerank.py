"""Rerankings: documents ranked by a query.

Only what decides the route and the maximum cost is read: the query is read with every document.
Everything else passes unchanged between client and target.
"""

from typing import Final

import msgspec

from backends.answers import AnswerUsage, read_ranking
from gateway.errors import RequestError
from gateway.http.body import Members, decode_member
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import MODEL, OBJECT, TEXT, body_schema, list_schema
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

DOCUMENTS_LIMIT = PAIRS_LIMIT
_TAKEN: Final = frozenset({"model", "query", "documents"})


def read_reranking(members: Members, body: IncomingBody) -> InferenceRequest:
    """Return the request from `query` and `documents`, as vLLM, Jina and Cohere define them."""
    refuse_other_spellings(members)
    model, query = model_of(members), _query(members)
    documents = decode_member(members, "documents", list[msgspec.Raw])
    if not documents:
        words = "`documents` is required: a list of texts, or of objects with a `text`."
        raise RequestError("bad_request", words, param="documents")
    if len(documents) > DOCUMENTS_LIMIT:
        words = f"`documents` has {len(documents)} items; one request may have {DOCUMENTS_LIMIT}."
        raise RequestError("bad_request", words, param="documents")
    top_n: int | None = decode_member(members, "top_n", int)
    if top_n is not None and top_n < 0:
        raise RequestError("bad_request", "`top_n` must not be negative.", param="top_n")
    for name, text in (("query", query), ("documents", bytes(members["documents"]))):
        refuse_inside(text, name)
    sizes = [len(bytes(document)) for document in documents]
    features = media_features(query + bytes(members["documents"]))
    media = media_of_pairs(query, documents)
    return InferenceRequest(
        kind=RequestKind.RERANK,
        path="/rerank",
        model=model,
        stream=False,
        wants_usage=True,
        wants_running_usage=False,
        prompts=1,
        n=1,
        max_tokens=0,
        prompt_bytes=(len(query) + MARK_BYTES + bytes_beside(members, _TAKEN)) * len(documents)
        + sum(sizes),
        seldom_read_bytes=spelled_pairs(query, bytes(members["documents"]), repeats=len(documents)),
        features=features | media.features,
        session=body.session,
        members=members,
        extent=extent_of_pairs(len(query), sizes),
        media_parts=media_parts(bytes(members["documents"])) if Feature.IMAGES in features else 0,
        files=media.files,
    )


def _query(members: Members) -> bytes:
    """Return the encoded query: a text, or an object for multimodal models of Jina and vLLM."""
    query = bytes(members.get("query", b"null"))
    if query[:1] not in (b'"', b"{") or query == b'""':
        raise RequestError(
            "bad_request", "`query` is required and must be a string.", param="query"
        )
    return query


def _read_answer(body: bytes, _media: str) -> AnswerUsage:
    return read_ranking(body)


def _body(_max_n: int) -> Schema:
    members = {
        "model": MODEL,
        "query": {"anyOf": [{"type": "string", "minLength": 1}, OBJECT]},
        "documents": list_schema({"anyOf": [TEXT, OBJECT]}, DOCUMENTS_LIMIT),
        "top_n": {"type": ["integer", "null"], "minimum": 0},
    }
    return body_schema("query", members, "documents")


_PATH = KindPath(
    json_reader(read_reranking),
    PathDescription(
        summary="Documents ranked by a query",
        body=_body,
        answer={"type": "object", "anyOf": [{"required": ["results"]}, {"required": ["data"]}]},
        form=False,
        streamed=False,
        texts=False,
    ),
)
SPEC: Final = RequestKindSpec(
    kind=RequestKind.RERANK,
    paths={"/v1/rerank": _PATH, "/v2/rerank": _PATH, "/rerank": _PATH},
    usage=tokens_of_reranking,
    units=PAIR_UNITS,
    relay=chat_relay,  # no target streams a ranking
    read_answer=_read_answer,
    answer_has_text=False,
    generated=False,
    ranked=True,
    prefix_member=None,
    media_member="documents",
    shorten=("documents", "Send fewer or shorter documents."),
    sampled=False,
    equal_answers=EqualAnswers.NEVER,
    batched=False,
    usage_page=None,
    otel_operation="rerank",  # the conventions have no name for it
    openinference_kind="RERANKER",
    catalog=CatalogFacts("rerank"),
)
