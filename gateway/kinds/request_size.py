"""Size limits of one request besides its length, checked before any target is called.

Engines compile schemas and patterns before they answer, count alternatives at every token, and
decode each picture, so small texts can cause much work there. The limits exceed what applications
were seen to send, and are not configurable.
"""

import re
from contextlib import suppress

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode, holds
from gateway.kinds.patterns import (
    TEXT,
    count_repeats,
    decode_text,
    grammars,
    has_repeated_groups,
    max_repeat,
    nested_schemas,
    patterns,
    strip_quoted,
)

SCHEMA_BYTES = 256 * 1024  # also of all tools together: coding agents send about 100 KB
SCHEMA_LEVELS = 64  # of JSON: a property is two levels below its object
PATTERN_BYTES = 512
REPEATED = 1000  # repeats in a pattern's `{m,n}`, which becomes as many states
GROUPS_BYTES = 8 * 1024  # of all patterns with nested repeats: reading them takes time
ALTERNATIVES = 20  # per token; the limit of vLLM and of OpenAI (2026-11)
MEDIA_PARTS = 64
WITHIN = 2  # a structural tag is a text with schemas, which may be texts

# Members with schemas, patterns or grammars: of OpenAI, current and earlier vLLM, SGLang and
# llama.cpp.
SHAPES = (
    "response_format", "tools", "functions", "structured_outputs", "guided_json", "guided_regex",
    "guided_grammar", "guided_choice", "guided_whitespace_pattern", "structural_tag", "json_schema",
    "regex", "ebnf", "grammar",
)  # fmt: skip
_PATTERNS = frozenset({"guided_regex", "guided_whitespace_pattern", "regex"})  # the value is one
_GRAMMARS = frozenset({"guided_grammar", "ebnf", "grammar"})
_ALTERNATIVES = ("top_logprobs", "logprobs")
_LOOKED_AT = frozenset((*SHAPES, *_ALTERNATIVES))
_OPENS = re.compile(TEXT + rb"|[{}\[\]]")
# A part's type, or, as vLLM accepts it without one, the member with its medium.
_KIND = re.compile(
    rb'"type"\s*+:\s*+"(?:image_url|input_image|image|video_url|audio_url|input_audio)"'
)
_MEDIUM = re.compile(rb'"(?:image_url|video_url|audio_url|input_audio)"\s*+:')
# Of vLLM's parts. A `uuid` finds media in caches that all tenants share, also for a client that
# never sent them; embeddings would be unpacked as a tensor.
_INSIDE = re.compile(
    rb'"(uuid|image_pil|(?:image|audio|video|prompt)_embeds)"\s*+:'
    rb'|"type"\s*+:\s*+"(image_pil|(?:image|audio|video|prompt)_embeds)"'
)
_ANY_CASE = re.compile(
    rb'"(image_url|input_image|video_url|audio_url|input_audio|input_file|file_id|file_url|file_data'
    rb'|document_url)"\s*+:',
    re.IGNORECASE,
)
_NAMED = re.compile(rb'_(?:url|audio|embeds|pil)"')  # each name above has one of these endings
_HINT, _ESCAPED = b'"type"', b"\\u00"


def check(members: Members, prompt: bytes) -> None:
    """Raise `RequestError` for the first member or part above its limit, naming the limit."""
    if not _LOOKED_AT.isdisjoint(members):
        for name in SHAPES:
            if name in members:
                _check_shape(name, bytes(members[name]))
        for name in _ALTERNATIVES:
            if name in members and bytes(members[name]) not in (b"true", b"false"):
                _check_alternatives(name, decode_member(members, name, int, 0))
    _check_media(prompt)


def media_parts(prompt: bytes) -> int:
    """Return the maximum number of pictures, films and sounds that a conversation has."""
    return _parts(spell_out(prompt))


def _parts(prompt: bytes) -> int:
    return max(len(_KIND.findall(prompt)), len(_MEDIUM.findall(prompt)))


def _check_shape(name: str, text: bytes, levels: int = WITHIN) -> None:
    """Check a schema, pattern or grammar; `levels` is how deep encoded schemas are searched."""
    if len(text) > SCHEMA_BYTES:
        raise _much(name, f"is longer than {SCHEMA_BYTES} bytes")
    text = spell_out(text)
    if text.count(b"{") + text.count(b"[") > SCHEMA_LEVELS and _levels(text) > SCHEMA_LEVELS:
        raise _much(name, f"is nested more than {SCHEMA_LEVELS} deep")
    if name in _GRAMMARS:
        _check_groups(name, strip_quoted(decode_text(text)), GROUPS_BYTES)
        return
    left = GROUPS_BYTES
    for pattern in (decode_text(text),) if name in _PATTERNS else patterns(text):
        if len(pattern.encode()) > PATTERN_BYTES:
            raise _much(name, f"has a pattern of more than {PATTERN_BYTES} bytes")
        left = _check_groups(name, pattern, left)
    for grammar in grammars(text):
        left = _check_groups(name, strip_quoted(grammar), left)
    for inner in nested_schemas(text) if levels else ():
        _check_shape(name, inner, levels - 1)


def _check_groups(name: str, pattern: str, left: int) -> int:
    """Return the rest of `GROUPS_BYTES` after a pattern.

    Raises `RequestError` for too many repeats.
    """
    if has_repeated_groups(pattern):
        left -= len(pattern)
        if left < 0:
            raise _much(name, f"repeats groups in more than {GROUPS_BYTES} bytes of patterns")
        times = count_repeats(pattern)
    else:
        times = max_repeat(pattern)
    if times > REPEATED:
        raise _much(name, f"repeats what a pattern matches more than {REPEATED} times")
    return left


def spell_out(text: bytes) -> bytes:
    """Return JSON with letters in place of escapes, since names may be written in escapes."""
    if holds(text, _ESCAPED):
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


def refuse_inside(prompt: bytes, param: str) -> None:
    """Raise `RequestError` for parts with a `uuid` or embeddings; `param` is their member."""
    prompt = spell_out(prompt)
    if _NAMED.search(prompt) is not None:
        _refuse_inside(prompt, param)


def _check_media(prompt: bytes) -> None:
    if prompt.find(b"[", 1) < 0 and prompt.count(b"{") <= MEDIA_PARTS:
        return  # parts are objects in an inner list, which plain text lacks
    prompt = spell_out(prompt)
    _refuse_spellings(prompt)
    if _NAMED.search(prompt) is not None:
        _refuse_inside(prompt, "messages")
    elif prompt.count(_HINT) <= MEDIA_PARTS:
        return
    if _parts(prompt) > MEDIA_PARTS:
        words = f"`messages` may have {MEDIA_PARTS} pictures and sounds; send fewer at a time."
        raise RequestError("bad_request", words, param="messages")


def _refuse_spellings(prompt: bytes) -> None:
    """Raise `RequestError` for a part's member in another case, which servers in Go accept."""
    for match in _ANY_CASE.finditer(prompt):
        name, usual = match[1].decode(), match[1].lower().decode()
        if name != usual:
            words = f"`messages`: `{name}` is written `{usual}`: send that."
            raise RequestError("bad_request", words, param="messages")


def _refuse_inside(prompt: bytes, param: str) -> None:
    found = _INSIDE.search(prompt)
    if found is not None:
        name = (found[1] or found[2]).decode()
        words = f"`{param}`: parts with `{name}` are not taken. Send the picture itself."
        raise RequestError("bad_request", words, param=param)


def _much(name: str, what: str) -> RequestError:
    return RequestError("bad_request", f"`{name}` {what}. Send a smaller one.", param=name)
