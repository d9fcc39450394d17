"""Measures an answer in bytes of text, in two ways by which its tokens are judged.

`least` is text that the model certainly wrote: words, thoughts, refusals, names and arguments of
tools, a transcript of its voice. Fewer tokens than it needs cannot be meant, and an answer without
usage is estimated from it. `most` is every text that the model may have written, also in members
that are not known here; quoted pages, signatures and files are in it. More tokens than it has bytes
cannot be meant. Encoded pictures are in neither; sound is in both as far as it surely has tokens.
Walks keep a stack of their own: an answer's
nesting is the target's to choose.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from backends.json_mending import mend_json

_NOT_SAID = frozenset(
    ("role", "type", "id", "data", "images", "image_url", "finish_reason", "logprobs")
)
# Members that quote what the model read, or seal what it thought: no words of its own.
_QUOTED = frozenset((
    "annotations", "citation", "citations", "context", "data", "documents", "encrypted_content",
    "executed_tools", "groundingMetadata", "grounding_metadata", "image_url", "images", "logprobs",
    "search_results", "signature", "sources", "thoughtSignature", "thought_signature",
))  # fmt: skip
# Members that name something: no model's words either, as far as all of them together are short.
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

# Of a message or a delta. Thoughts are one text under several names.
_WORDS = frozenset(("content", "text", "refusal", "audio_transcript", "transcript"))
_THOUGHTS = frozenset((
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_summary", "reasoning_text",
    "thinking", "thinking_blocks", "thought", "thoughts",
))  # fmt: skip
_CALLS = frozenset(("tool_calls", "function_call"))
# Of a part of a content, of a part of thoughts, and of a voice.
_PART_WORDS = frozenset(("text", "content", "thinking", "summary", "refusal", "transcript"))
_CALLED = frozenset(("function", "custom"))
_ARGUMENTS = frozenset(("arguments", "input"))


class SaidBytes(NamedTuple):
    """UTF-8 bytes of what was said for certain, and of all that may have been said."""

    least: int
    most: int


def content_bytes(value: Any) -> int:
    """UTF-8 bytes of all that may be said in a decoded value, but in `_NOT_SAID`."""
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
    """Return UTF-8 bytes of what a decoded message or delta says for certain."""
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
    """UTF-8 bytes of a text, or of texts in a list of parts: not of what is quoted among them."""
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
    """Return UTF-8 bytes of a voice's transcript, and what its sound counts as."""
    data = voice.get("data") if isinstance(voice, dict) else None
    sound = len(data) * 3 // 4 if isinstance(data, str) else 0
    return part_bytes(voice) + sound // SOUND_BYTES


def _is_text(kind: Any) -> bool:
    """Return whether a part of such a type has the model's own words; parts without one do."""
    if not isinstance(kind, str):
        return kind is None
    return kind.endswith("text") or kind in _PART_WORDS or kind.startswith("reasoning")


def call_bytes(calls: Any) -> int:
    """UTF-8 bytes of the names and arguments of calls of tools; results may stand beside them."""
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
    """Without what stands in it as `data:` addresses: some write pictures so, as Markdown."""
    if len(text) > ENCODED_FROM and ";base64," in text:
        text = _ENCODED.sub(r"\1", text)
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def said_of_encoded(raw: bytes, measure: Any) -> SaidBytes:
    """Return both measures of encoded JSON, the lower one by `measure`, a function of this module.

    What cannot be read may be said from end to end.
    """
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return SaidBytes(0, len(raw))
    least = measure(value)
    return SaidBytes(least, max(least, content_bytes(value)))


def answer_said_bytes(body: bytes) -> SaidBytes:
    """Measure the choices of a whole answer; without any, all that stands in it may be said.

    What cannot be read is said from end to end.
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
    """Return UTF-8 bytes of what may be the model's own words in an answer of another form."""
    named = {name: value for name, value in answer.items() if name not in ("data", "usage")}
    return words_bytes([named, answer.get("data")])


def words_bytes(values: list[Any]) -> int:
    """UTF-8 bytes of what may be the model's own words in decoded values, labels beyond a few."""
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
    """Return the bytes that the choices of a whole answer say for certain."""
    return answer_said_bytes(body).least


def choice_bytes(choice: Any) -> int:
    """Return UTF-8 bytes of what a decoded choice says for certain, whole or in a chunk."""
    if not isinstance(choice, dict):
        return 0
    said = part_bytes(choice.get("text"))
    for name in ("message", "delta"):
        words = choice.get(name)
        if isinstance(words, dict):
            said += certain_bytes(words)
    return said


def decode_answer(body: bytes) -> Any:
    """The JSON of a whole answer, `None` for what is none; halves of characters are no fault."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = mend_json(body)
        return None if mended is None else decode_answer(mended)
