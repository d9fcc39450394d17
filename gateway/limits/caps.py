"""What one request may ask of whatever answers it, beside its length: said before any target hears.

Engines compile schemas and patterns before they answer, count alternatives at every token, and
decode each picture: small texts can ask for much there. The limits are above what applications
were seen to send, and no setting: who needs more needs another engine.
"""

import re
from contextlib import suppress

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members, encode, member

SCHEMA_BYTES = 256 * 1024  # of all tools together, too: coding agents send some 100 KB
SCHEMA_LEVELS = 64  # of JSON: a property lies two below its object
PATTERN_BYTES = 512
REPEATED = 1000  # in a pattern's `{m,n}`, which becomes as many states
ALTERNATIVES = 20  # per token; vLLM's own limit and OpenAI's (2026-11)
MEDIA_PARTS = 64

# Members that hold schemas, patterns or grammars: OpenAI's, vLLM's of now and before, SGLang's.
SHAPES = (
    "response_format", "tools", "functions", "structured_outputs", "guided_json", "guided_regex",
    "guided_grammar", "guided_choice", "structural_tag", "json_schema", "regex", "ebnf",
)  # fmt: skip
_PATTERNS = frozenset({"guided_regex", "regex"})  # whose value is one itself
_ALTERNATIVES = ("top_logprobs", "logprobs")
_LOOKED_AT = frozenset((*SHAPES, *_ALTERNATIVES))
_TEXT = rb'"(?:[^"\\]|\\.)*+"'
_OPENS = re.compile(_TEXT + rb"|[{}\[\]]")
_PATTERN = re.compile(rb'"(?:pattern|regex)"\s*+:\s*+(' + _TEXT + rb")")
_REPEAT = re.compile(rb"\{(\d*),?(\d*)\}")
_MEDIA = re.compile(
    rb'"type"\s*+:\s*+"(?:image_url|input_image|image|video_url|audio_url|input_audio)"'
)
_HINT, _ESCAPED = b'"type"', b"\\u00"


def check(members: Members, prompt: bytes) -> None:
    """Raises `RequestError` for the first that is too much, with its limit."""
    if not _LOOKED_AT.isdisjoint(members):
        for name in SHAPES:
            if name in members:
                _check_shape(name, bytes(members[name]))
        for name in _ALTERNATIVES:
            if name in members and bytes(members[name]) not in (b"true", b"false"):
                _check_alternatives(name, member(members, name, int, 0))
    long = len(prompt) > MEDIA_PARTS * len(_HINT)
    if long and (prompt.count(_HINT) > MEDIA_PARTS or _ESCAPED in prompt):
        _check_media(prompt)


def _check_shape(name: str, text: bytes) -> None:
    if len(text) > SCHEMA_BYTES:
        raise _much(name, f"is longer than {SCHEMA_BYTES} bytes")
    text = _spelt_out(text)
    if text.count(b"{") + text.count(b"[") > SCHEMA_LEVELS and _levels(text) > SCHEMA_LEVELS:
        raise _much(name, f"is nested more than {SCHEMA_LEVELS} deep")
    patterns = [text] if name in _PATTERNS else _PATTERN.findall(text)
    for pattern in patterns:
        if len(pattern) > PATTERN_BYTES + 2:
            raise _much(name, f"has a pattern of more than {PATTERN_BYTES} bytes")
        times = [int(one) for pair in _REPEAT.findall(pattern) for one in pair if one]
        if max(times, default=0) > REPEATED:
            raise _much(name, f"has a pattern that repeats more than {REPEATED} times")


def _spelt_out(text: bytes) -> bytes:
    """With letters as themselves: a name may be written in escapes, and means the same."""
    if _ESCAPED in text:
        with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return encode(msgspec.json.decode(text))
    return text


def _levels(text: bytes) -> int:
    most = level = 0
    for token in _OPENS.findall(text):
        if token in b"{[":
            level += 1
            most = max(most, level)
        elif token in b"}]":
            level -= 1
    return most


def _check_alternatives(name: str, count: int) -> None:
    if not 0 <= count <= ALTERNATIVES:
        raise RequestError(
            "bad_request", f"`{name}` must be between 0 and {ALTERNATIVES}.", param=name
        )


def _check_media(prompt: bytes) -> None:
    if len(_MEDIA.findall(_spelt_out(prompt))) > MEDIA_PARTS:
        words = f"`messages` may have {MEDIA_PARTS} pictures and sounds; send fewer at a time."
        raise RequestError("bad_request", words, param="messages")


def _much(name: str, what: str) -> RequestError:
    return RequestError("bad_request", f"`{name}` {what}. Send a smaller one.", param=name)
