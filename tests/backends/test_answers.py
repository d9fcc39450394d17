"""Answers that are no conversation: what they count, and what is no answer at all."""

import json

import pytest

from backends.answers import (
    AnswerUsage,
    is_sound,
    media_type,
    read_object,
    read_pictures,
    read_ranking,
    read_results,
    read_transcript,
    refuse_text,
)
from backends.errors import InvalidResponse, StreamError, UpstreamOverloaded
from backends.usage_bytes import UNREADABLE_USAGE


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (b'{"results":[],"usage":{"total_tokens":7}}', {"total_tokens": 7}),
        (b'{"object":"list","data":[{"index":0}],"usage":{"total_tokens":3}}', {"total_tokens": 3}),
        (b'{"results":[],"meta":{"billed_units":{"search_units":2}}}', {"search_units": 2}),
        (b'{"results":[{"index":0}],"meta":{"api_version":{"version":"2"}}}', None),
        (b'{"results":[],"usage":7,"meta":[]}', UNREADABLE_USAGE),
    ],
)
def test_what_a_ranking_counts(body: bytes, usage: dict | None) -> None:
    assert read_ranking(body) == AnswerUsage(usage)


@pytest.mark.parametrize(
    ("body", "media", "found"),
    [
        (b'{"text":"so"}', "application/json", AnswerUsage(None, 2)),
        (b'{"text":"","usage":{"seconds":3}}', "", ({"seconds": 3}, 0)),
        (b'{"text":"a","duration":2.5}', "", ({"type": "duration", "seconds": 2.5}, 1)),
        (b'{"text":"a","duration":9,"usage":{"type":"tokens"}}', "", ({"type": "tokens"}, 1)),
        (b"plain words", "text/plain", (None, 11)),
        (b"WEBVTT\n", "text/vtt", (None, 7)),
        (b'{"error":1}', "text/plain", (None, 11)),
    ],
)  # fmt: skip
def test_what_a_transcript_counts_and_says(body: bytes, media: str, found: AnswerUsage) -> None:
    assert read_transcript(body, media) == found


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"nonsense", b'{"text":1}', b'{"results":{}}', b'{"text":"\xff"}', b"{}"]
)
def test_what_answers_nothing_is_no_answer(body: bytes) -> None:
    with pytest.raises(InvalidResponse):
        read_ranking(body)
    with pytest.raises(InvalidResponse):
        read_transcript(body, "text/html")


def test_an_error_under_a_status_of_success_is_one() -> None:
    body = b'{"error":{"message":"secret","code":"overloaded"},"results":[],"text":""}'
    for read in (read_ranking, lambda body: read_transcript(body, "")):
        with pytest.raises(UpstreamOverloaded, match="overloaded") as raised:
            read(body)
        assert "secret" not in str(raised.value)


def test_media_types_without_their_parameters() -> None:
    assert media_type({"content-type": " Text/Plain; charset=utf-8"}) == "text/plain"
    assert media_type({}) == ""


def test_pictures_are_counted_with_their_form() -> None:
    told = b'{"data": [{}, {}], "usage": {"input_tokens": 4}, "size": "1x1", "quality": 5}'
    found = {"input_tokens": 4, "generated_images": 2, "size": "1x1"}
    assert read_pictures(told) == AnswerUsage(found)


@pytest.mark.parametrize(("told", "made"), [(3, 3), (1, 2), ("9", 2), (True, 2), (None, 2)])
def test_pictures_that_usage_tells_and_that_came_are_the_more_of_both(told, made) -> None:
    """Red before: what a target says that it bills was taken for what came."""
    body = {"data": [{"url": "a"}, {"url": "b"}], "usage": {"generated_images": told}}
    found = read_pictures(json.dumps(body).encode()).usage
    assert found is not None
    assert found["generated_images"] == made


def test_an_error_among_pictures_is_no_picture() -> None:
    failed = b'{"error": {"message": "no"}}'
    told = b'{"data": [{"b64_json": "x"}, %b, {"error": null}, null]}' % failed
    assert read_pictures(told) == AnswerUsage({"generated_images": 2})
    with pytest.raises(StreamError):
        read_pictures(b'{"data": [null, %b]}' % failed)


@pytest.mark.parametrize("body", [b"{}", b'{"data": []}', b'{"data": {}}', b"[]", b"x", b""])
def test_an_answer_without_pictures_is_none(body: bytes) -> None:
    with pytest.raises(InvalidResponse):
        read_pictures(body)


def test_lists_and_objects_tell_their_usage() -> None:
    assert read_results(b'{"results": [], "usage": {"a": 1}}', "results").usage == {"a": 1}
    assert read_object(b'{"tokens": [1]}').usage is None
    for read, body in ((read_results, b'{"results": 5}'), (read_results, b"[]")):
        with pytest.raises(InvalidResponse):
            read(body, "results")
    with pytest.raises(InvalidResponse):
        read_object(b"[]")


@pytest.mark.parametrize(
    ("media", "sound"),
    [("audio/mpeg", True), ("", True), ("application/octet-stream", True), ("audio/x-wav", True),
     ("text/html", False), ("application/json", False), ("audio/", False), ("audio/a b", False)],
)  # fmt: skip
def test_what_is_a_file_of_sound(media: str, sound: bool) -> None:
    assert is_sound(media) == sound


def test_a_text_in_place_of_sound_is_refused_and_its_error_told() -> None:
    with pytest.raises(InvalidResponse):
        refuse_text(b"{}", "application/json")
    overloaded = b'{"error": {"message": "x", "type": "overloaded_error"}}'
    with pytest.raises(UpstreamOverloaded):
        refuse_text(overloaded, "application/json")
