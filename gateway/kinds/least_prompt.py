"""Fewest tokens that a target can read in a prompt, to find figures that are too low.

Only what every target reads counts: the decoded text of messages, prompts and inputs. Earlier
thoughts, media, files, JSON white space and escapes do not count, and neither do runs of blanks:
templates trim them, and normalisers collapse them. A model may read no more than its context, and
may cut each text of a list. This is used only for figures that the request's bytes already make
doubtful.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from backends.text_length import text_bytes
from gateway.http.body import Members
from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES

_LISTS: Final = ("input", "documents", "query")
_SIDES: Final = ("text_1", "text_2", "queries", "items", "data_1", "data_2")  # of pairs to score
_PAIRED: Final = frozenset(("query", "queries", "text_1", "data_1"))
_PROMPTS: Final = frozenset(("messages", "prompt", "input", "query"))
_READ: Final = frozenset((*_PROMPTS, *_LISTS, *_SIDES, "tools", "functions"))
# Vendors' members that let a prompt be cut to a context: OpenRouter's `transforms` and plugins,
# truncation of Cohere, vLLM and TEI, Anthropic's context edits.
_SHORTENS: Final = re.compile(
    rb"trunc|transforms|middle.?out|compress|context_management|plugins|max_input|num_ctx",
    re.IGNORECASE,
)
# Tokens that a model of embeddings or rankings reads at least of a text that it cuts: half of the
# shortest context (128: paraphrase-multilingual-MiniLM-L12-v2), as a query may take the rest.
LEAST_READ: Final = 64
# In encoded text: quotes, and bytes of which blanks consist.
_MAY_BE_BLANKS: Final = b' "\\fnrt' + bytes(range(0x80, 0x100))
LONGEST_ESCAPE: Final = 6  # bytes of JSON for one byte of text
MOST_TOKENS: Final = 2**53  # of any prompt
_decode = msgspec.json.Decoder().decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Message(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Part(msgspec.Struct):
    type: Any = None
    text: msgspec.Raw = msgspec.Raw(b"null")


_decode_message = msgspec.json.Decoder(_Message).decode
_decode_part = msgspec.json.Decoder(_Part).decode


def least_prompt_tokens(members: Members, context: int | None, enough: int = MOST_TOKENS) -> int:
    """Return the tokens that every target counts at least.

    `context` is the target's, in tokens, None where none is stated. Models of embeddings and
    rankings cut longer texts; without a stated context, to `LEAST_READ` tokens each. Of a
    conversation, no more than `enough` tokens are read. So a long one that was counted as a few
    tokens takes no longer than a short one.
    """
    shortens = _may_shorten(members)
    found = 0
    for name in ("messages", "prompt"):
        if name in members:
            sizes = _prompt_sizes(name, bytes(members[name]), enough * LONGEST_TOKEN_BYTES)
            counts = [_least_tokens(size) for size in sizes]
            if name == "prompt":
                counts += _id_counts(bytes(members[name]))
            found += sum(_cut(count, context, shortens=shortens) for count in counts)
    # A ranking's document shares its context with the query, which has at most half of it.
    pairs = context is not None and not _PAIRED.isdisjoint(members)
    each = LEAST_READ if context is None else context // 2 if pairs else context
    # With a prompt of another kind these are a vendor's members, which a target may ignore.
    sides = () if not _PROMPTS.isdisjoint(members) else _SIDES
    for name in (*_LISTS, *sides):
        if name in members:
            raw = bytes(members[name])
            counts = [*map(_least_tokens, _text_sizes(raw)), *_id_counts(raw)]
            found += sum(_cut(count, each, shortens=shortens) for count in counts)
    return found


def _cut(count: int, context: int | None, *, shortens: bool) -> int:
    if shortens:
        return min(count, 1)
    return count if context is None else min(count, context)


def _least_tokens(size: int) -> int:
    return -(-size // LONGEST_TOKEN_BYTES)


def _may_shorten(members: Members) -> bool:
    """Return whether a member may let a target cut the prompt."""
    return any(
        name not in _READ
        and (_SHORTENS.search(name.encode()) or _SHORTENS.search(bytes(value))) is not None
        for name, value in members.items()
    )


def _prompt_sizes(name: str, raw: bytes, enough_bytes: int) -> list[int]:
    """Return the text bytes of each prompt; a conversation is one, read until it has enough."""
    if name == "prompt":
        return _text_sizes(raw)
    found = 0
    try:
        for string in _said(raw):
            most = LONGEST_ESCAPE * (enough_bytes - found)
            if _visible_bytes(string, most) >= most and not _has_data(string):
                return [enough_bytes]
            found += _drawn_bytes(_decode(string))
    except msgspec.ValidationError:  # no list
        return [0]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [len(raw)]
    return [found]


def _visible_bytes(string: bytes, enough: int) -> int:
    """Return the bytes of an encoded text without blanks; of a short text, its size."""
    size = len(string) - 2
    return size if size < enough else len(string.translate(None, _MAY_BE_BLANKS))


def _has_data(string: bytes) -> bool:
    """Return whether the text may have a picture's data, which do not count."""
    return b"base64" in string


def _said(messages: bytes) -> Iterator[bytes]:
    """Yield the encoded texts of messages, decoding part by part, as there may be very many."""
    for message in _decode_items(messages):
        content = _content_of(message)
        if content.startswith(b'"'):
            yield content
        for raw in _decode_items(content) if content.startswith(b"[") else ():
            part = bytes(raw)
            if part.startswith(b'"'):
                yield part
            elif part.startswith(b"{") and _is_text(said := _decode_part(part)):
                yield bytes(said.text)


def _content_of(message: msgspec.Raw) -> bytes:
    try:
        return bytes(_decode_message(message).content)
    except msgspec.ValidationError:  # no object
        return b"null"


def _is_text(part: "_Part") -> bool:
    is_kind = part.type is None or (isinstance(part.type, str) and part.type.endswith("text"))
    return is_kind and bytes(part.text).startswith(b'"')


def _id_counts(raw: bytes) -> list[int]:
    """Return the number of token ids of each prompt; empty if the member has texts."""
    if b'"' in raw or not raw.startswith(b"["):
        return []
    lists = raw.replace(b" ", b"").removeprefix(b"[").removesuffix(b"]").split(b"],[")
    return [part.count(b",") + 1 for part in lists if part.strip(b"[]\t\r\n")]


def _text_sizes(raw: bytes) -> list[int]:
    """Return the bytes of each text of a member, a text or a list; objects do not count."""
    if b'"' not in raw:
        return []  # token ids, perhaps very many: `_id_counts`
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [len(raw)]
    texts = value if isinstance(value, list) else [value]
    return [_drawn_bytes(text) for text in texts if isinstance(text, str)]


def _drawn_bytes(text: str) -> int:
    """Return the bytes of a text with each run of blanks collapsed."""
    return text_bytes(" ".join(text.split()))
