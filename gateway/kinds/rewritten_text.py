"""Growth of a prompt where a target rewrites parts of it.

A token is at least one byte of what a tokenizer reads, which may differ from what was sent. Some
normalise characters first (NFC: Qwen; NFKC: Anthropic's published tokenizer, XLM-R and its
descendants), and some templates indent tools on lines of their own (Llama 3, Granite). A target
rewrites whatever is JSON to it: tools, documents, template arguments, and arguments of calls, which
are texts in the request. Numbers and characters may then be longer.
"""

import re
from collections import Counter
from functools import cache
from itertools import accumulate
from typing import Any, Final
from unicodedata import decomposition, is_normalized, normalize

import msgspec

from gateway.http.body import holds
from gateway.kinds.request_size import spell_out

# Blocks with characters that a normaliser makes longer; a test checks all of Unicode.
_BLOCKS: Final = (
    (0xA0, 0x3400), (0xA690, 0xAC00), (0xF900, 0x1_0000), (0x1_0780, 0x1_07C0),
    (0x1_1080, 0x1_1A00), (0x1_6D60, 0x1_6D80), (0x1_CC00, 0x1_CD00), (0x1_D000, 0x1_D800),
    (0x1_E030, 0x1_F300), (0x1_FBF0, 0x1_FC00), (0x2_F800, 0x2_FA20),
)  # fmt: skip
_LEVELS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0}
_NO_MARKS: Final = bytes(byte for byte in range(256) if byte not in _LEVELS)
_EXPONENT: Final = re.compile(rb"[0-9][eE]")
_EXPONENT_CHARACTERS: Final = 18  # added to 1e20 in JavaScript; Python writes 1e15 in full
# Bytes added by an escape: \u and four digits, twice for characters beyond the first plane.
# Python escapes all non-ASCII by default, Jinja the special characters of HTML.
_LEADS: Final = {  # lead bytes of UTF-8, by the bytes that an escape adds
    4: bytes(range(0xC2, 0xE0)), 3: bytes(range(0xE0, 0xF0)), 8: bytes(range(0xF0, 0xF5)),
}  # fmt: skip
_HTML_MARKS: Final = (b"<", b">", b"&", b"'")
_ESCAPED_HTML: Final = 5
_ARGUMENTS: Final = re.compile(rb'"arguments"\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*"|[\[{])', re.DOTALL)
_LINE_TOKENS: Final = 2  # the end of a line, and the beginning of a run of blanks
# Four blanks per level; the longest run in Llama's first vocabulary has 16.
_LEVELS_PER_TOKEN: Final = 4


def spelled_bytes(raw: bytes) -> int:
    """Return the bytes that a normaliser may add to encoded JSON; 0 for most texts."""
    if raw.isascii() and not holds(raw, b"\\u"):
        return 0
    text = raw.decode(errors="replace")
    if "\\u" in text:
        text = _without_escapes(text)
    longer = longer_characters()
    if is_normalized("NFKC", text) or longer.keys().isdisjoint(text):
        return 0
    return sum(count * longer.get(letter, 0) for letter, count in Counter(text).items())


def _without_escapes(text: str) -> str:
    """Return the text of encoded JSON with each escape decoded."""
    plain = text.replace("\\/", "/").encode("ascii", "backslashreplace")
    halves = plain.decode("unicode_escape", "replace")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def indented_tokens(raw: bytes) -> int:
    """Return the tokens beyond its bytes that encoded JSON has when it is indented."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(raw.split(b'"')[::2])
    marks = outside.translate(None, _NO_MARKS)
    levels = sum(accumulate(map(_LEVELS.__getitem__, marks)))
    exponents = len(_EXPONENT.findall(outside))
    return (
        _LINE_TOKENS * len(marks) + levels // _LEVELS_PER_TOKEN + _EXPONENT_CHARACTERS * exponents
    )


def escaped_bytes(raw: bytes) -> int:
    """Return the bytes that encoded JSON gains when more characters are escaped."""
    found = _ESCAPED_HTML * sum(map(raw.count, _HTML_MARKS))
    if raw.isascii():
        return found
    for more, leads in _LEADS.items():
        found += more * (len(raw) - len(raw.translate(None, leads)))
    return found


def redumped_tokens(raw: bytes) -> int:
    """Return the tokens beyond its bytes that encoded JSON has when a target rewrites it."""
    return indented_tokens(raw) + escaped_bytes(raw)


def redumped_arguments(messages: bytes) -> int:
    """Return `redumped_tokens` of the calls' arguments in a conversation; 0 for most."""
    if not holds(messages, b'"arguments"') and not holds(messages, b"\\u00"):
        return 0
    found = 0
    for match in _ARGUMENTS.finditer(spell_out(messages)):
        given = match[1]
        if not given.startswith(b'"'):  # an object, which no API defines: any part may be rewritten
            return redumped_tokens(messages)
        try:
            text: Any = msgspec.json.decode(given, type=str)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        found += redumped_tokens(text.encode(errors="replace"))
    return found


@cache
def longer_characters() -> dict[str, int]:
    """Return the characters that a normaliser makes longer, with the bytes added."""
    found = {}
    for first, end in _BLOCKS:
        for character in map(chr, range(first, end)):
            if decomposition(character):
                more = longest_form(character) - len(character.encode())
                if more > 0:
                    found[character] = more
    return found


def longest_form(character: str) -> int:
    """Return the UTF-8 bytes of a character in the longer of NFC and NFKC."""
    return max(len(normalize(form, character).encode()) for form in ("NFC", "NFKC"))
