"""Choices of a stream chunk: their content, their end, and their usage."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from backends.answer_media import has_part, is_inline
from backends.text_length import (
    SaidBytes,
    call_bytes,
    certain_bytes,
    choice_bytes,
    content_bytes,
    said_of_encoded,
    text_bytes,
    unnamed_bytes,
    voice_bytes,
    words_bytes,
)
from backends.usage_bytes import usage_bytes

NULL = msgspec.Raw(b"null")
EMPTY = frozenset((b"null", b"[]", b"{}", b'""'))
_SHOWN = msgspec.Raw(b"[{}]")


def is_given(raw: msgspec.Raw) -> bool:
    """Return whether an encoded member has a value that is not empty."""
    return raw is not NULL and bytes(raw) not in EMPTY


class Delta(msgspec.Struct, gc=False):
    """Content of a choice; members with types of their own stay encoded."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: msgspec.Raw = NULL
    function_call: msgspec.Raw = NULL
    audio: msgspec.Raw = NULL
    images: msgspec.Raw = NULL


_WORDS = Delta.__struct_fields__
# Texts of a delta that are read, or are not model output.
_KNOWN = frozenset(
    (*Delta.__struct_fields__, "role", "name", "id", "type", "index", "signature", "object")
)

# Members of an answer, and of a choice, that are read separately or are not model output.
_OF_ANSWER = frozenset(("choices", "error", "prompt_filter_results", "usage"))
_OF_CHOICE = frozenset((
    "content_filter_offsets", "content_filter_result", "content_filter_results", "delta", "error",
    "finish_details", "matched_stop", "message", "stop_details", "stop_reason", "text", "usage",
))  # fmt: skip


class ChunkChoice(msgspec.Struct, gc=False):
    """A choice of a chunk. `beside`: bytes of possible content outside the named members."""

    index: int = 0
    finish_reason: str | None = None
    text: str | None = None
    delta: Delta | None = None
    usage: msgspec.Raw = NULL  # Kimi's place
    error: msgspec.Raw = NULL
    beside: int = 0

    def is_failed(self) -> bool:
        """Return whether the choice ends in an error instead of an answer."""
        return self.finish_reason == "error" or is_given(self.error)

    def has_content(self) -> bool:
        """Return whether the choice has model output: text, reasoning, tool call, image, ..."""
        if self.text:
            return True
        delta = self.delta
        if delta is None:
            return False
        if delta.content or delta.reasoning_content or delta.reasoning or delta.refusal:
            return True
        others = (delta.tool_calls, delta.function_call, delta.audio, delta.images)
        return any(raw is not NULL and bytes(raw) not in EMPTY for raw in others)

    def usage_bytes(self) -> bytes | None:
        """Return the encoded usage inside the choice (as Kimi sends it), or `None`."""
        return None if self.usage is NULL else usage_bytes(self.usage)

    def shows(self) -> bool:
        """Return whether the choice has an image, whose tokens its text cannot show."""
        delta = self.delta
        if delta is None:
            return False
        if delta.content is not None and is_inline(delta.content):
            return True
        return is_given(delta.images)

    def speaks(self) -> bool:
        """Return whether the choice has audio, whose tokens its text cannot show."""
        return self.delta is not None and is_given(self.delta.audio)

    def said(self) -> tuple[int, int]:
        """Return the bytes of text that are certainly model output, and those that may be."""
        said = text_bytes(self.text) if self.text else 0
        delta = self.delta
        if delta is None:
            return said, said + self.beside
        thought = delta.reasoning_content or delta.reasoning  # one text under two names
        for text in (delta.content, thought, delta.refusal):
            if text:
                said += text_bytes(text)
        most = said + self.beside
        if delta.tool_calls is NULL and delta.audio is NULL and delta.function_call is NULL:
            return said, most
        for raw, measure in (
            (delta.tool_calls, call_bytes),
            (delta.function_call, call_bytes),
            (delta.audio, voice_bytes),
        ):
            if raw is not NULL:
                least, all_said = said_of_encoded(bytes(raw), measure)
                said, most = said + least, most + all_said
        return said, most


class UnnamedWords(NamedTuple):
    """Content in members that this module does not name.

    `text`: whether it includes a plain text, as early reasoning members did. `words`: bytes that
    may be model output and are counted nowhere else.
    """

    text: bool
    said: SaidBytes
    words: int


def unnamed_words(answer: Mapping[str, Any]) -> UnnamedWords:
    """Return the content of unnamed members of a decoded chunk or answer.

    An answer without choices has another format, and all of it may be content.
    """
    choices = answer.get("choices")
    if not isinstance(choices, list):
        words = unnamed_bytes(answer)
        return UnnamedWords(False, SaidBytes(0, words), words)
    text, least, most, told = False, 0, 0, 0
    beside: list[Any] = [_without(answer, _OF_ANSWER)]
    for choice in choices:
        if not isinstance(choice, dict):
            beside.append(choice)
            continue
        beside.append(_without(choice, _OF_CHOICE))
        delta = choice.get("delta", choice.get("message"))
        if not isinstance(delta, dict):
            beside.append(delta)
            continue
        odd = {name: said for name, said in delta.items() if _may_tell_more(name, said)}
        if not odd:  # as of most chunks
            continue
        beside.append(odd)
        told += certain_bytes(odd)
        others = {name: said for name, said in odd.items() if name not in _KNOWN}
        certain = certain_bytes(others)
        text = (
            text or certain > 0 or any(isinstance(said, str) and said for said in others.values())
        )
        least, most = least + certain, most + max(certain, content_bytes(list(others.values())))
    words = max(0, words_bytes(beside) - told)
    return UnnamedWords(text, SaidBytes(least, max(most, least + words)), words)


def _without(members: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in known}


def _may_tell_more(name: str, said: Any) -> bool:
    """Return whether a member of a delta may have content besides what is read by its name."""
    return name not in _WORDS if isinstance(said, str) else said is not None


def odd_choice(choice: dict[str, Any]) -> ChunkChoice:
    """Return a choice whose members have unusual types (content as a list of parts, ...)."""
    delta = choice.get("delta")
    words = delta if isinstance(delta, dict) else {}
    least = choice_bytes(choice)
    said = [value for name, value in words.items() if name != "role"]
    most = max(least, content_bytes([said, choice.get("text")]))
    named = any(words.get(name) for name in _WORDS) or bool(choice.get("text"))
    shown = max(1, least) if named else least
    index, finish = choice.get("index"), choice.get("finish_reason")
    return ChunkChoice(
        index=index if isinstance(index, int) else 0,
        finish_reason=str(finish) if finish else None,
        text="?" * shown if shown else None,
        delta=Delta(images=_SHOWN) if has_part(words) else None,
        usage=msgspec.Raw(msgspec.json.encode(choice.get("usage"))),
        error=msgspec.Raw(msgspec.json.encode(choice.get("error"))),
        beside=max(0, most - shown),
    )
