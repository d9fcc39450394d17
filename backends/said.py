"""How much an answer says, in bytes of text: what its tokens are estimated from.

Asked only where no usable usage was reported. Every string that the model may have written counts
(text, reasoning, refusals, arguments of tools); names of roles and kinds, ids, encoded sound and
pictures do not. The walk keeps its own stack: an answer's nesting is the target's to choose.
"""

from typing import Any

import msgspec

_NOT_SAID = frozenset(("role", "type", "id", "data", "images", "finish_reason", "logprobs"))
_decode = msgspec.json.Decoder().decode


def said_bytes(value: Any) -> int:
    """UTF-8 bytes of all that is said in a decoded value."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            total += text_bytes(one)
        elif isinstance(one, dict):
            left += [inner for name, inner in one.items() if name not in _NOT_SAID]
        elif isinstance(one, list):
            left += one
    return total


def text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def said_in(raw: bytes) -> int:
    """The same of encoded JSON; what cannot be read may be said from end to end."""
    try:
        return said_bytes(_decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return len(raw)


def said_in_answer(body: bytes) -> int:
    """What the choices of a whole answer say; 0 where it has none, as embeddings."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return len(body)
    return said_bytes(answer.get("choices")) if isinstance(answer, dict) else len(body)
