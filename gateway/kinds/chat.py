"""Chat completions."""

from typing import Any, Final

from gateway.errors import RequestError
from gateway.http.body import Members, decode_member
from gateway.kinds import request_checks, request_size
from gateway.kinds.chat_files import measure_files
from gateway.kinds.chat_media import NO_MEDIA, count_media
from gateway.kinds.chat_pictures import measure_pictures
from gateway.kinds.chat_sound import measure_sounds
from gateway.kinds.file_members import count_files
from gateway.kinds.inference_request import IncomingBody, InferenceRequest, json_reader
from gateway.kinds.late_instructions import may_instruct_late
from gateway.kinds.member_names import refuse_other_spellings
from gateway.kinds.openapi_schemas import (
    OPTIONS_NEED_STREAM,
    TEXT,
    TOKEN_LIMIT,
    answer_schema,
    body_schema,
    generation_members,
    list_schema,
    null_members,
)
from gateway.kinds.prompt_bytes import prompt_bytes, seldom_read_bytes
from gateway.kinds.prompt_parts import NO_PARTS, find_parts, roles_of_text
from gateway.kinds.spec import (
    CatalogFacts,
    EqualAnswers,
    KindPath,
    PathDescription,
    RequestKindSpec,
    Schema,
)
from gateway.kinds.template_arguments import TEMPLATE_ARGUMENTS, check_template_arguments
from gateway.kinds.text_answers import chat_relay, chat_usage
from gateway.kinds.text_members import (
    NO_FEATURES,
    choices_of,
    is_set,
    is_streamed,
    max_tokens_of,
    media_features,
    model_of,
    options_of,
    prompt_of,
    refuse_others,
    session_of,
    text_features,
)
from gateway.sound.sound_decoder import SoundLengths
from router.request_kinds import RequestKind
from router.types import Feature

# Gemini's members for output media and voice: any kind of output may come.
MODALITIES: Final = frozenset(
    ("response_modalities", "responseModalities", "speech_config", "speechConfig")
)
CHAT_PATH: Final = "/v1/chat/completions"
_CHAT = RequestKind.CHAT  # a plain name: accessing an enum member costs ten times as much
_IMAGES = Feature.IMAGES
# Members besides messages that may have cache marks.
_MARKED = frozenset(("cache_control", "tools", "functions", "system"))
JUDGED_MEMBERS: Final = (TEMPLATE_ARGUMENTS,)
_FETCHED = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))


def read_chat(members: Members, *, max_n: int, session: str | None) -> InferenceRequest:
    """Return the validated request. Raises `RequestError` naming the parameter and the fix."""
    model = model_of(members)
    prompt = prompt_of(members, "messages")
    if prompt[:1] != b"[" or not prompt[1:-1].strip():
        raise RequestError(
            "bad_request", "`messages` must be a list with at least one message.", param="messages"
        )
    refuse_others(members, "messages")
    roles = roles_of_text(prompt)
    is_plain = roles is not None
    request_size.check(members, b"" if is_plain else prompt)
    request_checks.check(members)
    request_checks.refuse_nested(members)
    if not is_plain:
        request_checks.refuse_long_caches(prompt, "messages")
    if not _MARKED.isdisjoint(members):
        for name in _MARKED.intersection(members):
            request_checks.refuse_long_caches(bytes(members[name]), name)
    refuse_other_spellings(members)
    if TEMPLATE_ARGUMENTS in members:
        check_template_arguments(members)
    n, stream = choices_of(members, max_n), is_streamed(members)
    media = NO_FEATURES if is_plain else media_features(prompt)
    parts = NO_PARTS if is_plain else find_parts(prompt)
    judged = count_media(prompt) if media or parts.sound or parts.pictures else NO_MEDIA
    if judged.by_address:
        media |= _FETCHED
    features = _features(members, media, n)
    named = count_files(members, prompt)
    has_sound = parts.sound or judged.files > 0 or named > 0  # a file may be a film
    options = options_of(members, stream=stream)
    modalities = _modalities(members) if "modalities" in members else None
    return InferenceRequest(
        kind=_CHAT,
        path="/chat/completions",
        model=model,
        stream=stream,
        wants_usage=is_set(options, "include_usage"),
        wants_running_usage=is_set(options, "continuous_usage_stats"),
        prompts=1,
        n=n,
        max_tokens=max_tokens_of(members),
        prompt_bytes=prompt_bytes(members),
        seldom_read_bytes=seldom_read_bytes(members, calls=not is_plain),
        features=features,
        session=session_of(members, session),
        members=members,
        # A target may read several of these formats, so their parts add up.
        media_parts=(request_size.media_parts(prompt) if _IMAGES in features else 0)
        + parts.pictures,
        has_sound=has_sound or _asks_for_sound(members, modalities),
        text_prompt=not has_sound,
        files=parts.files + judged.files + judged.sounds + named,  # includes undecoded sounds
        late_instructions=may_instruct_late(prompt, roles),
        plain_turns=is_plain,
        template_arguments=TEMPLATE_ARGUMENTS in members,
        without_pictures=modalities is not None
        and "image" not in modalities
        and MODALITIES.isdisjoint(members),
    )


def _modalities(members: Members) -> frozenset[str] | None:
    """Return the requested kinds of output; None where any may come."""
    value = decode_member(members, "modalities", Any)
    if not value:  # an empty list means the default
        return None
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return frozenset(("audio", "image"))
    return frozenset(word.casefold() for word in value)


def _asks_for_sound(members: Members, modalities: frozenset[str] | None) -> bool:
    """Return whether the answer may be spoken; the member `audio` selects a voice."""
    if "audio" in members or (modalities is not None and "audio" in modalities):
        return True
    return not MODALITIES.isdisjoint(members)


def _features(members: Members, media: frozenset[Feature], n: int) -> frozenset[Feature]:
    kept = "store" in members and decode_member(members, "store", bool, False)
    used = text_features(members, n)
    used |= media
    if kept:  # the provider stores the answer, as OpenAI does with chat completions
        used.add(Feature.STORE)
    return frozenset(used) if used else NO_FEATURES


def _read(members: Members, body: IncomingBody) -> InferenceRequest:
    return read_chat(members, max_n=body.max_n, session=body.session)


async def _measure_media(request: InferenceRequest, sounds: SoundLengths) -> InferenceRequest:
    """Return the request with its sounds and pictures as they are decoded."""
    if request.media_parts:
        request = await measure_pictures(await measure_sounds(request, sounds))
    return await measure_files(request) if request.files else request


def _body(max_n: int) -> Schema:
    message = {"type": "object", "required": ["role"], "properties": {"role": TEXT}}
    members = {
        **generation_members(max_n),
        "max_completion_tokens": TOKEN_LIMIT,
        "messages": list_schema(message),
        **null_members("prompt", "input"),
    }
    return {**body_schema("messages", members), **OPTIONS_NEED_STREAM}


SPEC: Final = RequestKindSpec(
    kind=RequestKind.CHAT,
    paths={
        CHAT_PATH: KindPath(
            json_reader(_read, JUDGED_MEMBERS),
            PathDescription(
                summary="Chat completion",
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
    prefix_member="messages",
    media_member="messages",
    shorten=None,
    sampled=True,
    equal_answers=EqualAnswers.IF_SAME,
    batched=True,
    usage_page="/usage/completions",
    otel_operation="chat",
    catalog=CatalogFacts("chat", gives="text", sees=True),
    measure=_measure_media,
)
