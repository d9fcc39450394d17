"""Completions: one prompt or a list of them, each with its own choices."""

from typing import Final

from gateway.errors import RequestError, invalid_error
from gateway.http.body import Members, decode_member
from gateway.kinds import request_checks, request_size
from gateway.kinds.file_members import count_files
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import (
    OPTIONS_NEED_STREAM,
    TOKEN_LIMIT,
    answer_schema,
    body_schema,
    generation_members,
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
from gateway.kinds.text_answers import chat_relay, chat_usage
from gateway.kinds.text_members import (
    NO_FEATURES,
    choices_of,
    is_set,
    is_streamed,
    max_tokens_of,
    model_of,
    options_of,
    prompt_of,
    prompts_of,
    refuse_others,
    refuse_store,
    session_of,
    text_features,
)
from router.request_kinds import RequestKind
from router.types import Feature

DEFAULT_MAX_TOKENS = 16  # OpenAI's documented default of completions
_NOTHING_BUT_ECHO: Final[Schema] = {
    "if": {"required": ["max_tokens"], "properties": {"max_tokens": {"const": 0}}},
    "then": {"required": ["echo"], "properties": {"echo": {"const": True}}},
}
_COMPLETION = RequestKind.COMPLETION  # a plain name: accessing the enum costs ten times as much


def read_completion(members: Members, *, max_n: int, session: str | None) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the parameter and the fix."""
    model = model_of(members)
    prompt_of(members, "prompt")
    refuse_others(members, "prompt")
    request_size.check(members, b"")
    request_checks.check(members)
    request_checks.refuse_nested(members)
    refuse_other_spellings(members)
    prompts, n = prompts_of(members, "prompt"), choices_of(members, max_n)
    if n * prompts > max_n:
        raise RequestError(
            "bad_request",
            f"`prompt`: {prompts} prompts with `n` = {n} ask for {n * prompts} answers; one "
            f"request may ask for {max_n}. Send fewer prompts at a time.",
            param="prompt",
        )
    stream = is_streamed(members)
    features = _features(members, n)
    options = options_of(members, stream=stream)
    limit = _most_tokens(members)
    files = count_files(members, b"")
    return InferenceRequest(
        kind=_COMPLETION,
        path="/completions",
        model=model,
        stream=stream,
        wants_usage=is_set(options, "include_usage"),
        wants_running_usage=is_set(options, "continuous_usage_stats"),
        prompts=prompts,
        n=n,
        max_tokens=DEFAULT_MAX_TOKENS if limit is None else limit,
        prompt_bytes=prompt_bytes(members),
        seldom_read_bytes=seldom_read_bytes(members),
        features=features,
        session=session_of(members, session),
        members=members,
        has_sound=files > 0,
        files=files,
    )


def _most_tokens(members: Members) -> int | None:
    """Return the limit of the answer. Without any output an engine still generates a token.

    OpenAI and vLLM take 0 beside `echo`: the answer has the prompt alone, with its probabilities.
    """
    echoes = "echo" in members and decode_member(members, "echo", bool, False)
    limit = max_tokens_of(members, least=0)
    if limit == 0 and not echoes:
        raise invalid_error("max_tokens", "must be at least 1, or 0 with `echo: true`.")
    return None if limit is None else max(limit, 1)


def _features(members: Members, n: int) -> frozenset[Feature]:
    refuse_store(members)
    used = text_features(members, n)
    return frozenset(used) if used else NO_FEATURES


def _read(members: Members, body: IncomingBody) -> InferenceRequest:
    return read_completion(members, max_n=body.max_n, session=body.session)


def _body(max_n: int) -> Schema:
    members = {
        **generation_members(max_n),
        "prompt": prompt_schema(max_n),
        "max_tokens": {**TOKEN_LIMIT, "minimum": 0},
        "echo": {"type": ["boolean", "null"]},
        **null_members("messages", "input"),
    }
    return {**body_schema("prompt", members), **OPTIONS_NEED_STREAM, "allOf": [_NOTHING_BUT_ECHO]}


SPEC: Final = RequestKindSpec(
    kind=RequestKind.COMPLETION,
    paths={
        "/v1/completions": KindPath(
            json_reader(_read),
            PathDescription(
                summary="Completion",
                body=_body,
                answer=answer_schema("id", "object", "created", "model", "choices"),
                form=False,
                streamed=True,
                texts=False,
            ),
        )
    },
    usage=chat_usage,
    units=None,
    relay=chat_relay,
    read_answer=None,
    answer_has_text=True,
    generated=True,
    ranked=False,
    prefix_member="prompt",
    media_member="prompt",
    shorten=None,
    sampled=False,
    equal_answers=EqualAnswers.IF_SAME,
    batched=True,
    usage_page="/usage/completions",
    otel_operation="text_completion",
    catalog=CatalogFacts("completion", gives="text"),
)
