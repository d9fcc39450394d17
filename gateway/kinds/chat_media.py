"""Media of a conversation, classified part by part: pictures, decodable sounds, and files.

A picture has a configured maximum, and a sound has its duration. Everything else may fill its
target's context: a film at a URL, a PDF in the place of a picture, a sound that is not in the
request. Ambiguous parts count as such files, too.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from gateway.kinds.picture_sources import is_picture, speaks_of_another
from gateway.kinds.prompt_parts import once


class MediaCounts(NamedTuple):
    """The number of parts of each class; `by_address`: one of the sounds is at a URL."""

    pictures: int
    sounds: int
    files: int
    by_address: bool = False


NO_MEDIA: Final = MediaCounts(0, 0, 0)
_UNREADABLE: Final = MediaCounts(0, 0, 1)
_PICTURES: Final = ("image_url", "input_image")  # no set: a type may be an unhashable list
_SOUNDS: Final = ("input_audio", "audio_url")
_VENDORS: Final = ("image", "image_base64", "image_file")
# Members with a picture in formats of other vendors than OpenAI.
_SOURCES: Final = frozenset(("image", "image_base64", "image_file", "url", "data", "bytes"))
_SOUND_DATA: Final = re.compile(
    r"data:(?:audio/[a-z0-9.+-]+)?(?:;[a-z-]+=[^;,:]*)*;base64,", re.IGNORECASE
)
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})


def count_media(messages: bytes) -> MediaCounts:
    """Return the media of a conversation, classified one by one."""
    decoded = decode_once(messages)
    if decoded is None:
        return _UNREADABLE
    pictures = sounds = files = 0
    by_address = False
    for part in _objects(decoded):
        kind = part.get("type")
        if kind in _PICTURES or part.get("image_url") not in _NOTHING:
            is_one = _is_picture_part(part)
            pictures, files = pictures + is_one, files + (not is_one)
        for name in _SOUNDS:
            if kind == name or part.get(name) not in _NOTHING:
                given = _sound_source(part, name)
                is_one = given is not None and sound_data(part, name) is not None
                sounds, files = sounds + is_one, files + (not is_one)
                by_address = by_address or (given is not None and _is_address(given))
        if kind in _VENDORS or any(part.get(name) not in _NOTHING for name in _VENDORS):
            is_one = _is_vendors_picture(part)
            pictures, files = pictures + is_one, files + (not is_one)
    return MediaCounts(pictures, sounds, files, by_address)


def sounds_of(messages: bytes) -> Iterator[str]:
    """Yield the Base64 of each sound that `count_media` counts as one."""
    for part in _objects(decode_once(messages)):
        for name in _SOUNDS:
            if part.get("type") == name or part.get(name) not in _NOTHING:
                data = sound_data(part, name)
                if data is not None:
                    yield data


def decode_once(messages: bytes) -> Any:
    """Return the messages; None if a member name repeats or they cannot be decoded."""
    try:
        return json.loads(messages, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None


def sound_data(part: dict[str, Any], name: str) -> str | None:
    """Return the Base64 of a part's sound; None if it cannot be decoded by the gateway."""
    source = _sound_source(part, name)
    if source is None or speaks_of_another(part, "audio"):
        return None
    given = part.get(name)
    if isinstance(given, dict) and speaks_of_another({**given, _key_of(name): ""}, "audio"):
        return None
    head = _SOUND_DATA.match(source)
    data = source[head.end() :] if head is not None else source
    return data if data and data.isascii() and ":" not in data else None


def _key_of(name: str) -> str:
    return "data" if name == "input_audio" else "url"


def _sound_source(part: dict[str, Any], name: str) -> str | None:
    given = part.get(name)
    if name == "audio_url" and isinstance(given, str):
        source: Any = given
    else:
        source = given.get(_key_of(name)) if isinstance(given, dict) else None
    return source if isinstance(source, str) and source else None


def _is_address(source: str) -> bool:
    return "://" in source[:64]


def _is_picture_part(part: dict[str, Any]) -> bool:
    """Return whether an OpenAI part is a picture, and no member states another medium."""
    given = part.get("image_url")
    beside = {name: value for name, value in part.items() if name != "image_url"}
    if isinstance(given, dict):
        beside |= {name: value for name, value in given.items() if name != "url"}
        given = given.get("url")
    if not isinstance(given, str) or speaks_of_another(beside, "image"):
        return False
    return is_picture(given)


def _is_vendors_picture(part: dict[str, Any]) -> bool:
    """Return whether all sources of a part are pictures.

    The formats are those of Anthropic, Bedrock, DashScope and MCP.
    """
    sources: list[str] = []
    opened: list[Any] = [part]
    while opened:
        value = opened.pop()
        if speaks_of_another({k: v for k, v in value.items() if k not in _SOURCES}, "image"):
            return False
        for name, inner in value.items():
            if isinstance(inner, dict):
                opened.append(inner)
            elif isinstance(inner, list):
                return False
            elif name in _SOURCES and inner not in _NOTHING:
                sources.append(str(inner))
    return bool(sources) and all(map(is_picture, sources))


def _objects(decoded: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a conversation, except the arguments of tool calls."""
    opened = [decoded]
    while opened:
        value = opened.pop()
        if isinstance(value, list):
            opened += value
        elif isinstance(value, dict):
            yield value
            opened += (
                inner
                for name, inner in value.items()
                if isinstance(inner, list | dict) and not _is_called_with(value, name)
            )


def _is_called_with(value: dict[str, Any], name: str) -> bool:
    """Return whether a member has the arguments of a call, which are text to a target."""
    if name == "arguments":
        return "name" in value
    return name == "input" and value.get("type") == "tool_use"
