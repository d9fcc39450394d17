"""Files among the inputs of embeddings and rankings: data, URLs, and objects with them.

A plain web URL may also be meant as text. It requires no feature then, but may fill the target's
context: all such URLs of a request count as one file.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from gateway.kinds.picture_sources import has_media_ending
from router.types import Feature

_NO_FEATURES: Final[frozenset[Feature]] = frozenset()


class InputMedia(NamedTuple):
    """Inputs that a multimodal model opens, and the features that they require."""

    features: frozenset[Feature]
    files: int

    def add(self, other: "InputMedia") -> "InputMedia":
        return InputMedia(self.features | other.features, self.files + other.files)


NO_MEDIA: Final = InputMedia(_NO_FEATURES, 0)
# File members of Cohere, Voyage, Jina and Bedrock.
MEDIA_MEMBERS: Final = frozenset((
    "audio", "content", "contents", "file", "files", "image", "images", "inputImage", "inputs",
    "media", "video", "videos",
))  # fmt: skip
# Members of an input object; its text has other names.
_OBJECT_MEMBERS: Final = MEDIA_MEMBERS | {
    "audio_url", "document", "file_id", "file_url", "image_url", "pdf", "video_url",
}  # fmt: skip
# A file's data, or its address in a store: no model reads these as text.
_DATA: Final = re.compile(r"data:[^,\s]*;base64,", re.IGNORECASE)
_KEPT: Final = re.compile(r"(?:(?!https?:)[a-z][a-z0-9+.-]*://|files/)\S+\Z", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://\S+\Z", re.IGNORECASE)
FETCHED: Final = frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
_SENT: Final = frozenset((Feature.IMAGES,))
_DEEPEST: Final = 8


def media_of_inputs(inputs: Iterable[Any], counted: frozenset[str] = frozenset()) -> InputMedia:
    """Return the media of decoded inputs, each a text, an object, or a list of parts.

    `counted` are members of objects that are counted elsewhere.
    """
    found, plain = NO_MEDIA, False
    for item in inputs:
        if isinstance(item, str):
            source = item.strip()
            media = _of_text(source)
            plain = plain or (media is NO_MEDIA and _ADDRESS.match(source) is not None)
        else:
            media = _of_object(item, counted, 0)
        found = found.add(media)
    return found.add(InputMedia(_NO_FEATURES, 1)) if plain else found


def _of_text(source: str) -> InputMedia:
    if _DATA.match(source):
        return InputMedia(_SENT, 1)
    if _KEPT.match(source) or (_ADDRESS.match(source) and has_media_ending(source)):
        return InputMedia(FETCHED, 1)
    return NO_MEDIA


def _of_object(item: Any, counted: frozenset[str], depth: int) -> InputMedia:
    """Return the media of an object; each member with a file's name counts once, at any depth."""
    found = NO_MEDIA
    if depth > _DEEPEST:
        return InputMedia(FETCHED, 1)
    if isinstance(item, list):
        for part in item:
            found = found.add(_of_object(part, counted, depth + 1))
    elif isinstance(item, dict):
        for name, value in item.items():
            if name in counted:
                continue
            if isinstance(value, dict | list):
                inner = _of_object(value, counted, depth + 1)
                if name in _OBJECT_MEMBERS and not inner.files:
                    inner = _of_source(value)
                found = found.add(inner)
            elif isinstance(value, str) and value and name in _OBJECT_MEMBERS - {"content"}:
                found = found.add(InputMedia(_SENT if _DATA.match(value) else FETCHED, 1))
    return found


def _of_source(value: Any) -> InputMedia:
    """Return the media of an object in a file member: its data, its URL, or neither.

    A list of texts in such a member is no file.
    """
    texts = value.values() if isinstance(value, dict) else ()
    sources = [text for text in texts if isinstance(text, str)]
    if any(_of_text(text).features == FETCHED or _ADDRESS.match(text) for text in sources):
        return InputMedia(FETCHED, 1)
    return InputMedia(_SENT, 1) if any(map(_DATA.match, sources)) else NO_MEDIA
