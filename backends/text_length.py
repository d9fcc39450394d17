"""Text length of an answer in bytes, by two measures that bound its tokens.

`least` is certain model output: text, reasoning, refusals, names and arguments of tools, a
transcript of its voice. A lower token count is implausible, and an answer without usage is
estimated from it. `most` is all text that may be model output, also in unknown members, including
quoted pages, signatures and files. A token count above its bytes is implausible. Encoded images are
in neither; audio is in both by its certain minimum of tokens. Walks use an explicit stack, as the
target chooses an answer's nesting.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from backends.json_mending import mend_json

_NOT_SAID = frozenset(
    ("role", "type", "id", "data", "images", "image_url", "finish_reason", "logprobs")
)
# Members with quotes of input, or with encrypted reasoning: not model output.
_QUOTED = frozenset((
    "annotations", "citation", "citations", "context", "data", "documents", "encrypted_content",
    "executed_tools", "groundingMetadata", "grounding_metadata", "image_url", "images", "logprobs",
    "search_results", "signature", "sources", "thoughtSignature", "thought_signature",
))  # fmt: skip
# Members with names: not model output, as long as all of them together are short.
_LABELS = frozenset((
    "created", "event", "finish_reason", "format", "id", "model", "native_finish_reason", "object",
    "name", "obfuscation", "provider", "role", "service_tier", "system_fingerprint", "type",
))  # fmt: skip
LABEL_BYTES = 256
_ENCODED = re.compile(r"(data:[^,\s]{1,99}?);base64,[A-Za-z0-9+/=_-]+")
# Bytes of a sound's file that count as a byte of text. A token of text has at most 128 bytes: so
# two channels at 48 kHz, uncompressed, have 12 tokens a second at least, and models make 12 to 50.
SOUND_BYTES = 128
ENCODED_FROM = 256  # characters: shorter texts are not searched, nor would it matter
_decode = msgspec.json.Decoder().decode

# Members of a message or a delta. Reasoning is one text under several names.
_WORDS = frozenset(("content", "text", "refusal", "audio_transcript", "transcript"))
_THOUGHTS = frozenset((
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_summary", "reasoning_text",
    "thinking", "thinking_blocks", "thought", "thoughts",
))  # fmt: skip
_CALLS = frozenset(("tool_calls", "function_call"))
# Members of a content part, of a reasoning part, and of a voice.
_PART_WORDS = frozenset(("text", "content", "thinking", "summary", "refusal", "transcript"))
_CALLED = frozenset(("function", "custom"))
_ARGUMENTS = frozenset(("arguments", "input"))


class SaidBytes(NamedTuple):
    """UTF-8 bytes of certain model output, and of all possible model output."""

    least: int
    most: int


def content_bytes(value: Any) -> int:
    """Return UTF-8 bytes of all possible output in a decoded value, without `_NOT_SAID`."""
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


def certain_bytes(message: Mapping[str, Any]) -> int:
    """Return UTF-8 bytes of certain output in a decoded message or delta."""
    said = thought = 0
    for name, value in message.items():
        if name in _WORDS:
            said += part_bytes(value)
        elif name in _CALLS:
            said += call_bytes(value)
        elif name == "audio":
            said += voice_bytes(value)
        elif name in _THOUGHTS:
            thought = max(thought, part_bytes(value))
    return said + thought


def part_bytes(value: Any) -> int:
    """Return UTF-8 bytes of a text, or of texts in a list of parts, without quoted parts."""
    total, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            total += text_bytes(item)
        elif isinstance(item, list):
            left += item
        elif isinstance(item, dict) and _is_text(item.get("type")):
            left += [inner for name, inner in item.items() if name in _PART_WORDS]
    return total


def voice_bytes(voice: Any) -> int:
    """Return UTF-8 bytes of a voice's transcript, plus those that its audio counts as."""
    data = voice.get("data") if isinstance(voice, dict) else None
    sound = len(data) * 3 // 4 if isinstance(data, str) else 0
    return part_bytes(voice) + sound // SOUND_BYTES


def _is_text(kind: Any) -> bool:
    """Return whether a part of this type is model output; parts without type are."""
    if not isinstance(kind, str):
        return kind is None
    return kind.endswith("text") or kind in _PART_WORDS or kind.startswith("reasoning")


def call_bytes(calls: Any) -> int:
    """Return UTF-8 bytes of the names and arguments of tool calls, without results."""
    total, left = 0, [calls]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            for name, inner in item.items():
                if name in _ARGUMENTS:
                    total += content_bytes(inner)
                elif name == "name":
                    total += text_bytes(inner) if isinstance(inner, str) else 0
                elif name in _CALLED:
                    left.append(inner)
    return total


def text_bytes(text: str) -> int:
    """Return UTF-8 bytes of a text without `data:` addresses, such as Markdown images."""
    if len(text) > ENCODED_FROM and ";base64," in text:
        text = _ENCODED.sub(r"\1", text)
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def said_of_encoded(raw: bytes, measure: Any) -> SaidBytes:
    """Return both measures of encoded JSON; `measure` of this module gives the lower one.

    All bytes of invalid JSON are possible output.
    """
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return SaidBytes(0, len(raw))
    least = measure(value)
    return SaidBytes(least, max(least, content_bytes(value)))


def answer_said_bytes(body: bytes) -> SaidBytes:
    """Return both measures of the choices of a whole answer; without choices, of all of it.

    All bytes of invalid JSON are certain output.
    """
    answer = decode_answer(body)
    if not isinstance(answer, dict):
        return SaidBytes(len(body), len(body))
    choices = answer.get("choices")
    if choices is None:
        return SaidBytes(0, unnamed_bytes(answer))
    least = sum(map(choice_bytes, choices)) if isinstance(choices, list) else 0
    return SaidBytes(least, max(least, content_bytes(choices)))


def unnamed_bytes(answer: Mapping[str, Any]) -> int:
    """Return UTF-8 bytes of possible output in an answer of another format."""
    named = {name: value for name, value in answer.items() if name not in ("data", "usage")}
    return words_bytes([named, answer.get("data")])


def words_bytes(values: list[Any]) -> int:
    """Return UTF-8 bytes of possible output in decoded values, with labels beyond a few."""
    total = labels = 0
    left = [*values]
    while left:
        item = left.pop()
        if isinstance(item, str):
            total += text_bytes(item)
        elif isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            for name, inner in item.items():
                if name in _LABELS and isinstance(inner, str):
                    labels += len(inner)
                elif name not in _QUOTED:
                    left.append(inner)
    return total + max(0, labels - LABEL_BYTES)


def answer_content_bytes(body: bytes) -> int:
    """Return the bytes of certain output in the choices of a whole answer."""
    return answer_said_bytes(body).least


def choice_bytes(choice: Any) -> int:
    """Return UTF-8 bytes of certain output in a decoded choice, whole or of a chunk."""
    if not isinstance(choice, dict):
        return 0
    said = part_bytes(choice.get("text"))
    for name in ("message", "delta"):
        words = choice.get(name)
        if isinstance(words, dict):
            said += certain_bytes(words)
    return said


def decode_answer(body: bytes) -> Any:
    """Return the JSON of a whole answer after repairs, `None` if it is not JSON."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = mend_json(body)
        return None if mended is None else decode_answer(mended)
