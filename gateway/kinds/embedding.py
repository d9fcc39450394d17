"""Embeddings: one input or a list, each read by itself and answered at once."""

import re
from typing import Any, Final, NamedTuple

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members
from gateway.kinds import request_checks, request_size
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import (
    MODEL,
    USER,
    answer_schema,
    body_schema,
    null_members,
    prompt_schema,
)
from gateway.kinds.picture_sources import has_media_ending
from gateway.kinds.prompt_bytes import prompt_bytes, seldom_read_bytes
from gateway.kinds.spec import KindPath, PathDescription, RequestKindSpec, Schema
from gateway.kinds.text_answers import chat_relay
from gateway.kinds.text_members import (
    NO_FEATURES,
    is_set,
    is_streamed,
    model_of,
    options_of,
    prompt_of,
    prompts_of,
    refuse_others,
    refuse_store,
    session_of,
)
from ledger.usage import tokens_of_embedding
from router.prompts import RequestUnits
from router.request_kinds import RequestKind
from router.types import Feature

INPUTS_LIMIT = 2048  # OpenAI's own, by its reference of `/v1/embeddings` (2026-11)


def read_embedding(members: Members, *, session: str | None) -> InferenceRequest:
    """Validate and condense; raises `RequestError` naming the parameter and the fix."""
    model = model_of(members)
    prompt_of(members, "input")
    refuse_others(members, "input")
    request_size.check(members, b"")
    request_checks.check(members)
    refuse_other_spellings(members)
    inputs = prompts_of(members, "input")
    if "n" in members and bytes(members["n"]) != b"null":
        raise RequestError("unsupported", "`n` does not apply to embeddings.", param="n")
    if inputs > INPUTS_LIMIT:
        raise RequestError(
            "bad_request",
            f"`input` has {inputs} items; one request may have {INPUTS_LIMIT}.",
            param="input",
        )
    media = _media_of(members)
    extent, stream = _longest_share(inputs, members["input"]), is_streamed(members)
    refuse_store(members)
    options = options_of(members, stream=stream)
    return InferenceRequest(
        kind=RequestKind.EMBEDDING,
        path="/embeddings",
        model=model,
        stream=False,
        wants_usage=is_set(options, "include_usage"),
        wants_running_usage=is_set(options, "continuous_usage_stats"),
        prompts=1,
        n=1,
        max_tokens=0,
        prompt_bytes=prompt_bytes(members),
        seldom_read_bytes=seldom_read_bytes(members),
        features=media.features,
        session=session_of(members, session),
        members=members,
        extent=extent,
        has_sound=media.files > 0,
        text_prompt=not media.files,
        files=media.files,
    )


class _InputMedia(NamedTuple):
    """Inputs that a model of pictures and films opens, and what that asks of a target."""

    features: frozenset[Feature]
    files: int


_NO_INPUT_MEDIA: Final = _InputMedia(NO_FEATURES, 0)
# A file's text, or its address at a store: no model reads one as words.
_DATA: Final = re.compile(r"data:[^,\s]*;base64,", re.IGNORECASE)
_KEPT: Final = re.compile(r"(?:(?!https?:)[a-z][a-z0-9+.-]*://|files/)\S+\Z", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://\S+\Z", re.IGNORECASE)
_FETCHED: Final = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
_SENT: Final = frozenset((Feature.IMAGES,))
# Others' members for the same: Cohere's, Voyage's, Jina's, Bedrock's.
_MEDIA_MEMBERS: Final = (
    "audio", "content", "contents", "file", "files", "image", "images", "inputImage", "inputs",
    "media", "video", "videos",
)  # fmt: skip
_NOTHING: Final = (b"null", b'""', b"[]", b"{}")


def _media_of(members: Members) -> _InputMedia:
    """Return what of the inputs may be a file: its own data, or an address.

    A plain address of the web may also be meant as words. It asks nothing of a target, then, but
    may fill its context.
    """
    used: frozenset[Feature] = NO_FEATURES
    files = 0
    for name in _MEDIA_MEMBERS:
        if name in members and bytes(members[name]) not in _NOTHING:
            used, files = used | _FETCHED, files + 1
    text = bytes(members["input"])
    if b":" in text or b"/" in text or b"\\" in text:  # a list of token ids has none of them
        given: Any = msgspec.json.decode(text)
        for item in given if isinstance(given, list) else [given]:
            source = item.strip() if isinstance(item, str) else ""
            if _DATA.match(source):
                used, files = used | _SENT, files + 1
            elif _KEPT.match(source) or (_ADDRESS.match(source) and has_media_ending(source)):
                used, files = used | _FETCHED, files + 1
            elif _ADDRESS.match(source):
                files += 1
    return _InputMedia(used, files) if files else _NO_INPUT_MEDIA


def _longest_share(inputs: int, listed: msgspec.Raw) -> RequestUnits | None:
    """An engine reads a list's texts one by one: the longest must fit, not all together."""
    if inputs == 1:
        return None
    sizes = [len(bytes(raw)) for raw in msgspec.json.decode(listed, type=list[msgspec.Raw])]
    return RequestUnits(longest=max(sizes) / max(sum(sizes), 1))


def _read(members: Members, body: IncomingBody) -> InferenceRequest:
    return read_embedding(members, session=body.session)


def _body(_max_n: int) -> Schema:
    members = {
        "model": MODEL,
        "input": prompt_schema(INPUTS_LIMIT),
        **USER,
        **null_members("n", "messages", "prompt"),
    }
    return body_schema("input", members)


SPEC: Final = RequestKindSpec(
    kind=RequestKind.EMBEDDING,
    paths={
        "/v1/embeddings": KindPath(
            json_reader(_read),
            PathDescription(
                summary="Embeddings",
                body=_body,
                answer=answer_schema("object", "data", "model", "usage"),
                form=False,
                streamed=False,
                texts=False,
            ),
        )
    },
    usage=tokens_of_embedding,
    units=None,
    relay=chat_relay,
    read_answer=None,
    answer_has_text=False,  # reading the numbers took 23 ms of the loop's time
    generated=False,
    ranked=False,
    prefix_member=None,
    media_member="input",
    shorten=None,
    sampled=False,
    batched=True,
    usage_page="/usage/embeddings",
    otel_operation="embeddings",
)
