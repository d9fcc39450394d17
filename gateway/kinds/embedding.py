"""Embeddings: one input or a list, each read separately and answered at once."""

from typing import Any, Final

import msgspec

from backends.vectors import pack_answer
from gateway.errors import RequestError
from gateway.http.body import Members, encode, encode_raw
from gateway.kinds import request_checks, request_size
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.input_media import (
    FETCHED,
    MEDIA_MEMBERS,
    NO_MEDIA,
    InputMedia,
    media_of_inputs,
)
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import (
    MODEL,
    USER,
    answer_schema,
    body_schema,
    null_members,
    prompt_schema,
)
from gateway.kinds.prompt_bytes import prompt_bytes, seldom_read_bytes
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.text_answers import chat_relay
from gateway.kinds.text_members import (
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
from ledger.journals.records import TokenCounts
from ledger.prices.rates import prompt_tokens
from ledger.unit_usage import tokens_of_embedding
from router.prompts import RequestUnits
from router.request_kinds import RequestKind

INPUTS_LIMIT = 2048  # OpenAI's limit, by its reference of `/v1/embeddings` (2026-11)


def read_embedding(members: Members, *, session: str | None) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the parameter and the fix."""
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


_NOTHING: Final = (b"null", b'""', b"[]", b"{}")


def _media_of(members: Members) -> InputMedia:
    """Return which inputs and vendors' members may be files."""
    found = NO_MEDIA
    for name in MEDIA_MEMBERS:
        if name in members and bytes(members[name]) not in _NOTHING:
            found = found.add(InputMedia(FETCHED, 1))
    text = bytes(members["input"])
    if b":" in text or b"/" in text or b"\\" in text:  # token ids have none of these characters
        given: Any = msgspec.json.decode(text)
        found = found.add(media_of_inputs(given if isinstance(given, list) else [given]))
    return found


def _longest_share(inputs: int, listed: msgspec.Raw) -> RequestUnits | None:
    """Return the longest text's share of a list, as an engine reads texts one by one."""
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


def tell_usage(body: bytes, tokens: TokenCounts) -> bytes:
    """Return the answer with estimated usage, which OpenAI's clients expect in each."""
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    prompt = prompt_tokens(tokens)
    usage = {"prompt_tokens": prompt, "total_tokens": prompt}
    return encode({**members, "usage": encode_raw(usage)})


def _as_asked(request: InferenceRequest, body: bytes) -> bytes:
    encoding = bytes(request.members.get("encoding_format", b""))
    return pack_answer(body) if encoding == b'"base64"' else body


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
    answer_has_text=False,  # parsing the numbers took 23 ms of the event loop
    generated=False,
    ranked=False,
    prefix_member=None,
    media_member="input",
    shorten=("input", "Send fewer or shorter texts."),
    sampled=False,
    equal_answers=EqualAnswers.ALWAYS,
    batched=True,
    usage_page="/usage/embeddings",
    tell_usage=tell_usage,
    as_asked=_as_asked,
    otel_operation="embeddings",
    openinference_kind="EMBEDDING",
    catalog=CatalogFacts("embedding", gives="embedding"),
)
