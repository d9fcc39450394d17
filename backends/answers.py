"""Readers of whole answers other than conversations: rankings, transcripts, images.

Rankings are JSON with `results` (vLLM, Jina, Cohere) or `data` (Voyage). A transcript is JSON with
its `text`, or plain text or subtitles without any counts.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from backends.charged_errors import charged_error
from backends.errors import InvalidResponse
from backends.reported import error_in, read_error
from backends.text_length import text_bytes
from backends.usage_bytes import BESIDE, decode_told
from backends.usage_places import usage_in

PICTURE_FORM = ("size", "quality")
OCTETS = "application/octet-stream"
TEXTS = frozenset({"text/plain", "text/vtt", "text/srt", "application/x-subrip"})
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# Members of an answer that hold its content.
_ASKED = frozenset(("data", "results", "text", "segments", "words"))
_PICTURES = ("b64_json", "url")
_MADE = "generated_images"  # Volcengine's word
_NOTHING = frozenset((b"null", b"[]", b"{}", b'""'))


class AnswerUsage(NamedTuple):
    """Usage as the target reports it, and `said_bytes` of transcribed text."""

    usage: dict[str, Any] | None
    said_bytes: int = 0


def media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def read_ranking(body: bytes) -> AnswerUsage:
    """Return the usage of a ranking, or Cohere's billed units.

    Raises `InvalidResponse` for an answer without results.
    """
    members = _decode_members(body)
    if not any(bytes(members.get(name, b"null"))[:1] == b"[" for name in ("results", "data")):
        raise error_in(body) or InvalidResponse("the answer has no results")
    return AnswerUsage(_usage_of(members))


def read_results(body: bytes, name: str) -> AnswerUsage:
    """Return the usage of an answer with a list `name`. Raises `InvalidResponse` without it."""
    members = _decode_members(body)
    if bytes(members.get(name, b"null"))[:1] != b"[":
        raise error_in(body) or InvalidResponse(f"the answer has no {name}")
    return AnswerUsage(_usage_of(members))


def read_pictures(body: bytes) -> AnswerUsage:
    """Return the usage with the number of images, and their size and quality if stated.

    Raises `InvalidResponse` for an answer without images.
    """
    members = _decode_members(body)
    try:
        pictures = msgspec.json.decode(members.get("data", b"null"), type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError):
        pictures = []
    made = sum(map(_is_picture, pictures))
    if not made:
        failed = next((bytes(item) for item in pictures if bytes(item) != b"null"), None)
        if failed is not None:
            raise charged_error(read_error(failed), msgspec.json.decode(body))
        raise error_in(body) or InvalidResponse("the answer has no pictures")
    usage = with_pictures(_usage_of(members), made)
    for name in PICTURE_FORM:
        if isinstance(said := _value(members.get(name)), str):
            usage[name] = said
    return AnswerUsage(usage)


def with_pictures(usage: Mapping[str, Any] | None, made: int) -> dict[str, Any]:
    """Return usage with the number of images: received, or reported if that is higher."""
    told = {} if usage is None else dict(usage)
    counted = told.get(_MADE)
    return {**told, _MADE: max(made, counted) if type(counted) is int else made}


def _is_picture(item: msgspec.Raw) -> bool:
    """Return whether an entry of the list is neither empty nor an error."""
    if bytes(item) == b"null":
        return False
    try:
        told = _decode(item)
    except (msgspec.MsgspecError, RecursionError):
        return True
    failed = bytes(told.get("error", b"null")) not in _NOTHING
    return not failed or any(bytes(told.get(name, b"null")) not in _NOTHING for name in _PICTURES)


def is_sound(media: str) -> bool:
    """Return whether a media type is audio; some servers send none."""
    return media in ("", OCTETS) or re.fullmatch(r"audio/[a-z0-9.+-]{1,64}", media) is not None


def refuse_text(body: bytes, _media: str) -> AnswerUsage:
    """Raise the error that an answer reports instead of audio."""
    raise error_in(body) or InvalidResponse("the answer is not a sound")


def read_object(body: bytes) -> AnswerUsage:
    """Return the usage of a JSON object. Raises `InvalidResponse` for anything else."""
    return AnswerUsage(_usage_of(_decode_members(body)))


def read_transcript(body: bytes, media: str) -> AnswerUsage:
    """Return the usage of a transcript: text if its media type says so, else JSON."""
    if media in TEXTS:
        return AnswerUsage(None, len(body))
    members = _decode_members(body)
    text = _value(members.get("text"))
    if not isinstance(text, str):
        raise error_in(body) or InvalidResponse("the answer has no text")
    usage, lasts = _usage_of(members), _value(members.get("duration"))
    if not usage and isinstance(lasts, (int, float)):  # `verbose_json` of whisper-1 and its like
        usage = {"type": "duration", "seconds": lasts}
    return AnswerUsage(usage, text_bytes(text))


def _decode_members(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        body.decode()  # the decoder does not look into values
        members = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise error_in(body) or InvalidResponse("the answer is not a JSON object") from error
    if bytes(members.get("error", b"null")) not in _NOTHING:
        raise charged_error(read_error(body), {name: _value(raw) for name, raw in members.items()})
    if any(body.count(b'"%b"' % name.encode()) > 1 for name in members.keys() - _ASKED):
        told = decode_told(body) or {}
        members[BESIDE] = msgspec.Raw(msgspec.json.encode(told.get(BESIDE)))
    return members


def _usage_of(members: Mapping[str, msgspec.Raw]) -> dict[str, Any] | None:
    """Return the usage at any place of an answer, `None` if there is none."""
    told = {name: _value(raw) for name, raw in members.items() if name not in _ASKED}
    return usage_in(told)


def _value(raw: msgspec.Raw | None) -> Any:
    try:
        return None if raw is None else decode_told(bytes(raw)) or msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
