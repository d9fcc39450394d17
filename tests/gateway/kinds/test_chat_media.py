"""Each medium of a conversation is a picture, a sound that can be decoded, or a file."""

import base64
import json

import pytest

from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.kinds.chat_media import MediaCounts, count_media, sounds_of
from router.types import Feature

DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
PICTURE = f"data:image/png;base64,{DATA}"
PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7" + b"x" * 8_000).decode()
ADDRESS = "https://a.example/b.png"
WAV = base64.b64encode(b"RIFF" + bytes(60)).decode()


def shown(url, **more):
    return {"type": "image_url", "image_url": {"url": url, **more}}


def heard(data, **more):
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav", **more}}


PICTURES = (
    shown(PICTURE, detail="low"),
    shown(PICTURE, format="image/png"),
    shown(ADDRESS),
    {"image_url": {"url": ADDRESS}},
    {"type": "image_url", "image_url": ADDRESS},
    {"type": "input_image", "image_url": PICTURE},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    {"type": "image", "source": {"type": "url", "url": ADDRESS}},
    {"type": "image", "image": PICTURE},
    {"image": {"format": "png", "source": {"bytes": DATA}}},
    {"type": "image", "data": DATA, "mimeType": "image/png"},
)
SOUNDS = (
    heard(WAV),
    heard("data:;base64," + WAV),
    heard("data:audio/ogg;codecs=opus;base64," + WAV),
    heard(WAV[:40] + "\n" + WAV[40:]),
    {"input_audio": {"data": WAV}},
    {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64," + WAV}},
    {"audio_url": "data:audio/wav;base64," + WAV},
)
FILES = (
    shown(PDF),
    shown("data:video/mp4;base64,AAAA"),
    shown("https://www.youtube.com/watch?v=x"),
    shown("gs://b/x.mp4", format="video/mp4"),
    shown(PICTURE, format="application/pdf"),
    {**shown(PICTURE), "format": "application/pdf"},
    {**shown(PICTURE), "video_metadata": {"fps": 24}},
    shown(None),
    {"type": "image_url"},
    {"type": "image_url", "image_url": [PICTURE]},
    {"type": "image", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "JVBERi0x"}},
    {"type": "image_file", "image_file": {"file_id": "file-1"}},
    {"type": "image", "image": [PICTURE]},
    heard("https://x.example/10h.mp3"),
    heard(""),
    heard(7),
    heard(WAV, mime_type="video/mp4"),
    heard("data:video/mp4;base64," + WAV),
    {"type": "audio_url", "audio_url": {"url": "https://x.example/10h.mp3"}},
    {"type": "input_audio"},
)


def encoded(*parts, role="user") -> bytes:
    return json.dumps([{"role": role, "content": [{"type": "text", "text": "a"}, *parts]}]).encode()


@pytest.mark.parametrize("part", PICTURES)
def test_pictures(part) -> None:
    assert count_media(encoded(part, part)) == MediaCounts(2, 0, 0)


@pytest.mark.parametrize("part", SOUNDS)
def test_sounds_that_can_be_decoded(part) -> None:
    assert count_media(encoded(part)) == MediaCounts(0, 1, 0)
    (data,) = sounds_of(encoded(part))
    assert data.replace("\n", "") == WAV


@pytest.mark.parametrize("part", FILES)
def test_all_else_is_a_file(part) -> None:
    counts = count_media(encoded(part))
    assert (counts.pictures, counts.sounds, counts.files) == (0, 0, 1)
    assert not list(sounds_of(encoded(part)))


@pytest.mark.parametrize("part", FILES)
def test_a_file_may_be_a_film_with_sound_and_fills_the_context(part) -> None:
    body = b'{"model": "m", "messages": ' + encoded(part) + b"}"
    asked = read_chat(decode_members(body), max_n=1, session=None)
    assert asked.files > 0
    assert asked.has_sound
    assert not asked.text_prompt


def test_a_sound_is_a_file_until_it_is_decoded() -> None:
    body = b'{"model": "m", "messages": ' + encoded(heard(WAV), shown(ADDRESS)) + b"}"
    asked = read_chat(decode_members(body), max_n=1, session=None)
    assert (asked.files, asked.media_parts) == (1, 2)


def test_a_sound_at_an_address_needs_a_target_that_fetches_it() -> None:
    body = b'{"model": "m", "messages": ' + encoded(heard("https://x.example/a.mp3")) + b"}"
    asked = read_chat(decode_members(body), max_n=1, session=None)
    assert Feature.MEDIA_URLS in asked.features


def test_a_picture_anywhere_in_the_conversation_is_judged() -> None:
    inner = {"type": "tool_result", "content": [shown(PDF)]}
    assert count_media(encoded(inner)).files == 1


def test_what_a_tool_was_called_with_is_text() -> None:
    arguments = {"image_url": "logo", "image": "b", "input_audio": 5}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    used = {"type": "tool_use", "id": "1", "name": "f", "input": arguments}
    assert count_media(json.dumps([message]).encode()) == MediaCounts(0, 0, 0)
    assert count_media(encoded(used)) == MediaCounts(0, 0, 0)


@pytest.mark.parametrize(
    "prompt",
    [
        b'[{"content": [{"type": "image_url", "image_url": "x", "image_url": "y"}]}]',
        b"[" * 5_000,
    ],
)
def test_what_can_be_read_in_two_ways_or_not_at_all_is_a_file(prompt) -> None:
    assert count_media(prompt).files == 1


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_members_that_hold_nothing_are_no_media(nothing) -> None:
    part = {"type": "text", "text": "a", "image_url": nothing, "input_audio": nothing}
    assert count_media(encoded({**part, "image": nothing})) == MediaCounts(0, 0, 0)


@pytest.mark.parametrize("kind", [[], {}, ["image_url"]])
def test_a_type_that_is_no_word_is_no_error_of_ours(kind) -> None:
    """Red before: a list has no hash, and the request was a 500."""
    assert count_media(encoded({"type": kind, "text": "a"})) == MediaCounts(0, 0, 0)
