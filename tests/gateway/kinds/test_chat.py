"""Chat completions: what is read of one, and what of it is kept for its target."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import CHAT_PATH, SPEC, read_chat
from gateway.kinds.inference_request import InferenceRequest
from router.request_kinds import RequestKind
from router.types import Feature

MESSAGES = [{"role": "user", "content": "hello"}]


def asked(**members: Any) -> InferenceRequest:
    text = json.dumps({"model": "m", "messages": MESSAGES, **members}).encode()
    return read_chat(decode_members(text), max_n=8, session=None)


def test_a_conversation_is_one_prompt_of_several_choices() -> None:
    request = asked(n=3, user="u", stream=True, stream_options={"include_usage": True})
    assert (request.kind, request.path) == (RequestKind.CHAT, "/chat/completions")
    assert (request.prompts, request.n, request.max_tokens) == (1, 3, None)
    assert (request.stream, request.wants_usage, request.session) == (True, True, "u")
    assert request.extent is None


@pytest.mark.parametrize("messages", [None, [], "hello", {}])
def test_messages_are_a_list_with_one_at_least(messages: Any) -> None:
    with pytest.raises(RequestError) as caught:
        asked(messages=messages)
    assert caught.value.param == "messages"


def test_pictures_are_counted_where_there_are_any() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}
    request = asked(messages=[{"role": "user", "content": [part, part]}])
    assert (request.features, request.media_parts) == ({Feature.IMAGES}, 2)
    assert asked().media_parts == 0


SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


def spelled(text: bytes) -> bytes:
    """With its names of sound in escapes."""
    return text.replace(b"audio", b"\\u0061udi\\u006F")


@pytest.mark.parametrize("write", [bytes, spelled])
@pytest.mark.parametrize(
    ("members", "has_sound", "text_prompt"),
    [
        ({}, False, True),
        ({"modalities": ["text"]}, False, True),
        ({"modalities": ["text", "audio"]}, True, True),
        ({"audio": {"voice": "a"}}, True, True),
        ({"messages": [{"role": "user", "content": [SOUND]}]}, True, False),
        ({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, True, False),
    ],
)
def test_sound_is_seen_in_any_spelling(write, members, has_sound, text_prompt) -> None:
    text = write(json.dumps({"model": "m", "messages": MESSAGES, **members}).encode())
    request = read_chat(decode_members(text), max_n=8, session=None)
    assert (request.has_sound, request.text_prompt) == (has_sound, text_prompt)


def test_files_are_counted() -> None:
    part = {"type": "file", "file": {"file_id": "file-1"}}
    assert asked(messages=[{"role": "user", "content": [part]}]).files > 0
    assert asked().files == 0


def test_the_schema_bounds_choices_as_the_gateway_does() -> None:
    body = SPEC.paths[CHAT_PATH].described.body(5)
    assert body["properties"]["n"]["maximum"] == 5
    assert body["required"] == ["model", "messages"]


@pytest.mark.parametrize(
    ("modalities", "has_sound", "without_pictures"),
    [
        ("null", False, False),
        ("[]", False, False),
        ('["text"]', False, True),
        ('["text", "image"]', False, False),
        ('["TEXT", "IMAGE"]', False, False),
        ('["text", "\\u0061udio"]', True, True),
        ("7", True, False),
    ],
)
def test_kinds_of_output_that_are_asked_for(modalities, has_sound, without_pictures) -> None:
    body = f'{{"model": "m", "modalities": {modalities}, "messages": [{{"role": "user"}}]}}'
    asked = read_chat(decode_members(body.encode()), max_n=1, session=None)
    assert (asked.has_sound, asked.without_pictures) == (has_sound, without_pictures)


def test_kinds_of_output_that_nothing_can_hold_are_a_bad_request() -> None:
    body = b'{"model": "m", "modalities": [1e999], "messages": [{"role": "user"}]}'
    with pytest.raises(RequestError) as caught:
        read_chat(decode_members(body), max_n=1, session=None)
    assert (caught.value.row.status, caught.value.param) == (400, "modalities")


@pytest.mark.parametrize(
    "member", ["response_modalities", "responseModalities", "speech_config", "speechConfig"]
)
def test_a_vendors_words_for_kinds_of_output_may_ask_for_any(member) -> None:
    request = asked(**{member: ["AUDIO"]}, modalities=["text"])
    assert (request.has_sound, request.without_pictures) == (True, False)
