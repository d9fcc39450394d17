"""Detection of generated images and audio in an answer, whose tokens its text cannot show.

Images are separate parts (`images`, or parts of `content` with an image type) or `data:` addresses
in a text, such as Markdown. A text that only mentions one does not count.
"""

import re
from collections.abc import Iterator
from typing import Any

from backends.text_length import ENCODED_FROM, decode_answer

# The data of a generated image are longer than this, for any model.
_INLINE = re.compile(
    rf"data:image/[^,\s]{{1,99}}?;base64,[A-Za-z0-9+/=_-]{{{ENCODED_FROM}}}", re.IGNORECASE
)


def has_pictures(answer: bytes) -> bool:
    """Return whether a whole answer has images, as parts or in its text."""
    if not _may_have(answer):
        return False
    return any(has_part(words) or has_inline(words) for words in _words_of(answer))


def has_picture_part(answer: bytes) -> bool:
    """Return whether a whole answer has an image as a separate part.

    Parts are in a list inside the list of choices; testing for one byte takes a hundredth of the
    time.
    """
    if answer.find(b"[", answer.find(b"[") + 1) < 0 or not _may_have(answer):
        return False
    return any(map(has_part, _words_of(answer)))


def has_sound(answer: bytes) -> bool:
    """Return whether a whole answer has generated audio."""
    if b"audio" not in answer and b"\\u00" not in answer:
        return False
    return any(bool(words.get("audio")) for words in _words_of(answer))


def has_part(words: dict[str, Any]) -> bool:
    """Return whether a decoded message or delta has an image as a part."""
    if words.get("images"):
        return True
    content = words.get("content")
    return isinstance(content, list) and any(
        isinstance(part, dict) and _is_picture(part) for part in content
    )


def has_inline(words: dict[str, Any]) -> bool:
    """Return whether the text of a decoded message or delta has an image as a `data:` address."""
    content = words.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return any(isinstance(text, str) and is_inline(text) for text in texts)


def is_inline(text: str) -> bool:
    """Return whether a text has an image as a `data:` address."""
    return len(text) > ENCODED_FROM and ";base64," in text and _INLINE.search(text) is not None


def _may_have(answer: bytes) -> bool:
    """Return whether the bytes contain a name of image members, in any JSON escaping."""
    return b"image" in answer or b"\\u00" in answer


def _is_picture(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if isinstance(kind, str):
        return "image" in kind
    return bool(part.get("image_url") or part.get("image"))


def _words_of(answer: bytes) -> Iterator[dict[str, Any]]:
    """Yield the messages of a whole answer."""
    value = decode_answer(answer)
    choices = value.get("choices") if isinstance(value, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict):
            yield message
        if isinstance(choice, dict) and isinstance(text := choice.get("text"), str):
            yield {"content": text}
