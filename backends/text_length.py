"""How much an answer says, in bytes of text: what its tokens are estimated from.

Asked only where no usable usage was reported. Every string that the model may have written counts
(text, reasoning, refusals, arguments of tools); names of roles and kinds, ids, encoded sound and
pictures do not. The walk keeps its own stack: an answer's nesting is the target's to choose.
"""

import re
from typing import Any

import msgspec

_NOT_SAID = frozenset(
    ("role", "type", "id", "data", "images", "image_url", "finish_reason", "logprobs")
)
_PICTURES = (b'"images"', b'"image_url"', b";base64,")  # within a text, quotes are escaped
_ENCODED = re.compile(r";base64,[A-Za-z0-9+/=_-]+")
ENCODED_FROM = 256  # characters: shorter texts are not searched, nor would it matter
_decode = msgspec.json.Decoder().decode


def content_bytes(value: Any) -> int:
    """UTF-8 bytes of all that is said in a decoded value."""
    total, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            total += text_bytes(item)
        elif isinstance(item, dict):
            left += [inner for name, inner in item.items() if name not in _NOT_SAID]
        elif isinstance(item, list):
            left += item
    return total


def text_bytes(text: str) -> int:
    """Without what stands in it as `data:` addresses: some write pictures so, as Markdown."""
    if len(text) > ENCODED_FROM and has_base64(text):
        text = _ENCODED.sub("", text)
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def has_base64(text: str) -> bool:
    return ";base64," in text


def has_pictures(answer: bytes) -> bool:
    """Whether pictures are in a whole answer, by the names that vendors give them."""
    return any(mark in answer for mark in _PICTURES)


def encoded_content_bytes(raw: bytes) -> int:
    """The same of encoded JSON; what cannot be read may be said from end to end."""
    try:
        return content_bytes(_decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return len(raw)


def answer_content_bytes(body: bytes) -> int:
    """What the choices of a whole answer say; 0 where it has none, as embeddings."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return len(body)
    return content_bytes(answer.get("choices")) if isinstance(answer, dict) else len(body)
