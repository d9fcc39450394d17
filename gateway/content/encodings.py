"""Text in another spelling: escapes, percent signs, entities, base64, hexadecimal.

Each reading is a text of its own with, for each of its characters, where it stands in the text
that it was read from, so that what is found in it can be masked there.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

_BETWEEN: Final = (
    "and then|und dann|followed by|then|and|next|plus|dash|space|pause|dann|und|danach|et|puis|y|"
    "luego|e|poi"
)
_ESCAPE: Final = re.compile(
    r"(?=[%&\\=<\"',; |\r\n/\x1b])(?:"  # no letter begins one: most places are told at once
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)|&#(?P<number>\d{1,7});?|"
    r"&#[xX](?P<hexadecimal>[0-9A-Fa-f]{1,6});?|"
    r"(?P<named>&[A-Za-z]{2,12};)|(?:\\+|%)u(?:(?P<unicode>[0-9A-Fa-f]{4})|\{(?P<braced>[0-9A-Fa-f]{2,6})\})|\\+x(?P<byte>[0-9A-Fa-f]{2})|"
    r"\\+U(?P<wide>[0-9A-Fa-f]{8})|\\+(?P<octal>[0-7]{3})|(?P<quoted>(?:=[0-9A-F]{2}){3,})|"
    r"\\+(?P<control>[nrt/\"'.@_-])|"
    r"(?P<remark><!--[^<>\n]{0,24}-->|/\*[^*/\n]{0,24}\*/|\x1b\[[0-9;]{0,12}m|"
    r"(?<=[0-9A-Z]) {1,2}(?://|#|--) ?[a-z ]{1,24}(?=\r?\n[0-9A-Z]))|"
    # What layout and code put between the groups of a number, or the pieces of a key.
    r"(?P<tag></?(?!at>|dot>)[A-Za-z][A-Za-z0-9]{0,9}"
    r"(?: [a-z-]{1,12}=\"[^\"<>%&\\@]{0,60}\")*\s?/?>)|"
    r"(?P<joined>(?<=[\w@.])(?P<quote>[\"'])[ \t]{0,3}(?:(?:[+.&]|\|\|)[ \t\r\n]{0,12}|"
    r"\r?\n[ \t]{0,12}[+.&] ?|\}\$?\{|"
    # Beside an address, strings without a sign between them are arguments of a command.
    r"(?:(?<= )[ \t\r\n]{0,12}|\\?\r?\n[ \t]{0,12})(?![\"'][\w.%+-]{0,64}@))"
    r"(?P=quote)(?=[\w@.]))|"
    r"(?P<listed>(?<=[0-9A-Z])[\"']\]?,\s{0,2}\[?[\"']"
    r"(?:[A-Za-z_]{1,12}\d{0,2}[\"']:\s?[\"'])?(?=[0-9A-Z]))|"
    rf"(?P<word>(?<=[0-9A-Z])[,;]? \(?(?:{_BETWEEN})\)?,? (?=[0-9A-Z]))|"
    r"(?P<line>(?<=[0-9A-Z])(?: ?\|\r?\n[ \t]?\| ?|(?P<item>[\"']?),?\r?\n[ \t]{0,8}"
    r"(?:(?:[-*>]|\d{1,2}[.)]|- \[[ x]\]) )?(?P=item))(?=[0-9A-Z])))"
)
_LAID_OUT: Final = {
    "remark": "",
    "tag": " ",
    "joined": "",
    "listed": " ",
    "word": " ",
    "line": "\n",
}
ESCAPE_SIGNS: Final = (
    "%[0-9A-Fa-f]{2}",
    "&#[xX]?[0-9A-Fa-f]{1,6}[;&]",
    "&(?:amp;#|commat;|period;|lowbar;|hyphen;|dash;|num;|colon;|plus;|sol;|nbsp;|e[nm]sp;|thinsp;|shy;|[nm]dash;|quot;|apos;)",
    r"[0-9A-Za-z]\\@[0-9A-Za-z]",
    r"\\u[0-9A-Fa-f]{4}",
    r"\\u\{[0-9A-Fa-f]{2}",
    r"\\x[0-9A-Fa-f]{2}",
    r"\\[nrt][0-9]{4}",
    r"\\U[0-9A-Fa-f]{8}",
    r"\\[0-3][0-7]{2}\\+[0-3][0-7]{2}",
    "=[0-9A-F]{2}=[0-9A-F]{2}=[0-9A-F]{2}",
    "[0-9]</?[A-Za-z]",
    # Literals alone: what a repetition begins with costs as much as all other signs.
    (
        r"[0-9A-Za-z_@-](?:\" \+ \"|\"\+\"|' \+ '|'\+'|\" \. \"|' \. '|'\.'|\" & \"|\"&\"|'\|\|'|"
        r"' \|\| ')[0-9A-Za-z_@-]"
    ),
    r"[0-9A-Za-z_-](?:\" \+\n|' \+\n|' \.\n|' \|\|\n)",
    "[0-9A-Za-z_-](?:\"(?: \\\\\n|\n)[ \t]{0,12}\"|'\n[ \t]{0,12}')[0-9A-Za-z_-]",
    "[0-9A-Za-z_-](?:\" \"|' ')[0-9A-Za-z_-]",
    "[0-9](?:\", ?\"|', ?')[0-9]",
    r"[0-9]\"\], ?\[\"[0-9]",
    r"'\}\$?\{'",
    r"\"\}\$?\{\"",
    "<wbr>",
    "</span><span",
    r"-->[0-9A-Z]",
    r"[0-9A-Z]/\*",
    r"[0-9] (?://|#|--) [a-z ]{1,24}\n[0-9A-Z]",
    r"\x1b\[",
    r"%u00[2-7][0-9A-Fa-f]",
    r"\n- \[ \] [0-9A-Z]",
    r"[0-9]\", ?\"[A-Za-z_]{1,12}[0-9]{0,2}\": ?\"[0-9]",
    "[0-9A-Z][\"']\n[ \t]{0,8}- [\"'][0-9A-Z]",
    r"[0-9A-Z]\n2[.)] [0-9A-Z]",
    "(?:[a-z]>@|@<[a-z])",
    # One word each: the engine takes a second to compile the choice of all of them.
    *(f"[0-9]{mark} {word} [0-9]" for mark, word in product(("", ",", ";"), _BETWEEN.split("|"))),
    r"[0-9] \((?:pause|space|dash)\) [0-9]",
    r"\|\n\| ?[0-9A-Z]{2,8} ?\|\n",
)
# Base64 of ASCII has a slash for a question mark alone, and paths are full of them.
# An equals sign alone is everywhere in code and logs: what may stand behind one is a part of it.
ENCODED_SIGNS: Final = (
    "[A-Za-z0-9+]{20}",
    "[A-Za-z0-9+/]{40}",
    r"[A-Za-z0-9+/]{10}(?:==|=[\r\n\"',;.)}|<\]\x1e\x1f]|= )",
)
_BASES: Final = {"number": 10, "octal": 8}
# Capitals alone may be base32.
_PLAIN: Final = re.compile("[a-z/+]+|[A-Z]*[/+][A-Z/+]*")
_SIGN_SIZE: Final = 20
_WIDE: Final = "[A-Za-z0-9+/_-]"
_RUN: Final = re.compile(
    rf"{_WIDE}*(?:[\r\n]{{1,2}}{_WIDE}{{16,}})*(?:[\r\n]{{1,2}}{_WIDE}+(?==))?={{0,2}}"
)
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_RUN_LETTERS: Final = frozenset(_LETTERS + "=")
_PADDING: Final = re.compile("={0,2}")
_LINE_ENDS: Final = re.compile(r"[\r\n]+")
_HEXADECIMAL: Final = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_BASE32: Final = re.compile("[A-Z2-7]{20,}")
_SEARCHED: Final = 512  # characters before a sign in which its run begins
_UNREAD_LEAST: Final = 256  # characters that decode to no text: a file, not an identifier
_TEXT_SHARE: Final = 0.97
_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")  # that begin UTF-16
_HEAD: Final = 96  # letters of base64 by which a long run is told from text
_ZERO_LETTERS: Final = 8  # one in so many is an A where every other byte is zero, and more
_CONTROLS: Final = bytes({*range(1, 32), 127} - set(b"\t\n\r"))


class DecodedText(NamedTuple):
    """A text as it is read; `starts` and `ends`: of each of its characters in the source."""

    text: str
    starts: list[int]
    ends: list[int]


def reread(text: str, found: Iterable[tuple[int, int, str]]) -> DecodedText | None:
    """Return the text with stretches, which rise, as what they stand for; None: there is none."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for begin, end, plain in found:
        parts += (text[at:begin], plain)
        starts += (*range(at, begin), *([begin] * len(plain)))
        ends += (*range(at + 1, begin + 1), *([end] * len(plain)))
        at = end
    if not parts:
        return None
    parts.append(text[at:])
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return DecodedText("".join(parts), starts, ends)


def escapes_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where escapes stand and what they stand for."""
    for match in _ESCAPE.finditer(text):
        if (plain := _plain_of(match)) is not None:
            yield *match.span(), plain


def _plain_of(match: re.Match[str]) -> str | None:
    kind, value = match.lastgroup or "", match[0]
    if not kind or kind in _LAID_OUT:
        return _LAID_OUT.get(kind)
    if kind == "percent":
        return bytes.fromhex(value.replace("%", "")).decode("utf-8", "replace")
    if kind == "quoted":  # as mail encodes it
        return bytes.fromhex(value.replace("=", "")).decode("utf-8", "replace")
    if kind == "named":
        plain = html.unescape(value)
        return None if plain == value else plain
    if kind == "control":
        return {"n": "\n", "r": "\r", "t": "\t"}.get(value[-1], value[-1])
    code = int(match[kind], _BASES.get(kind, 16))
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def plain_until(text: str, place: int) -> int:
    """Return where a path or a word ends, which has one sort of letters, that a sign ends in.

    It is nothing encoded. Returns less than `place` where more than one sort stands before it.
    """
    match = _PLAIN.match(text, max(0, place - _SIGN_SIZE))
    return -1 if match is None else match.end()


def run_around(text: str, place: int) -> tuple[int, int]:
    """Return where the run begins and ends that has a sign before `place`."""
    last = place
    if text[last - 1] not in _RUN_LETTERS:
        place = last = last - 1  # what stands behind an equals sign
    while text[last - 1] == "=":
        last -= 1
    first = max(0, last - _SEARCHED)
    begin = first + len(text[first:last].rstrip(_LETTERS))
    found = (_RUN if last == place else _PADDING).match(text, place)
    assert found is not None  # they match nothing, too
    return begin, found.end()


def read_run(run: str) -> str | None:
    """Return the text that a run is base64, base32 or hexadecimal of, or None."""
    whole = _LINE_ENDS.sub("", run) if "\n" in run or "\r" in run else run
    whole = whole.removeprefix("0x")
    if whole.isupper() and _BASE32.fullmatch(bare := whole.rstrip("=")):
        return _from_base32(bare)
    if "=" not in whole and (whole.islower() or whole.isupper() or whole.isdigit()):
        is_hexadecimal = whole.isalnum() and _HEXADECIMAL.fullmatch(whole)
        return _text_of(bytes.fromhex(whole)) if is_hexadecimal else None
    return _decode(whole)


def is_file(run: str) -> bool:
    """Return whether a run that is no text is long enough for a file in it."""
    return len(run) >= _UNREAD_LEAST


def _from_base32(bare: str) -> str | None:
    try:
        return _text_of(base64.b32decode(bare + "=" * (-len(bare) % 8)))
    except binascii.Error:
        return None


def _decode(run: str) -> str | None:
    if _HEXADECIMAL.fullmatch(run):
        return _text_of(bytes.fromhex(run))
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    if len(bare) > 4 * _HEAD and _is_binary(bare):
        return None
    try:
        bare = bare[: len(bare) - (len(bare) % 4 == 1)]
        return _text_of(base64.b64decode(bare + "=" * (-len(bare) % 4)))
    except (binascii.Error, ValueError):
        return None


def _is_binary(letters: str) -> bool:
    """Return whether the beginning of base64 shows that the whole is no text.

    What is no UTF-8 there is none in the whole; UTF-16 has a mark before it, or so many zeros that
    a quarter of the letters are A.
    """
    try:
        head = base64.b64decode(letters[:_HEAD])
        head[:-3].decode()
    except UnicodeDecodeError as error:
        is_cut = error.end >= len(head) - 3 and error.reason == "unexpected end of data"
        is_wide = head[:2] in _MARKS or letters.count("A") * _ZERO_LETTERS >= len(letters)
        return not is_cut and not is_wide
    except (binascii.Error, ValueError):
        return False
    return False


def _text_of(data: bytes) -> str | None:
    """Return what the bytes say, if they are text."""
    if len(data.translate(None, _CONTROLS)) < _TEXT_SHARE * len(data):
        return None
    try:
        text = data.decode(_width_of(data))
    except UnicodeDecodeError:
        return None
    plain = sum(map(str.isprintable, text)) + text.count("\n") + text.count("\t") + text.count("\r")
    return text if plain >= _TEXT_SHARE * len(text) else None


def _width_of(data: bytes) -> str:
    """Return the encoding of bytes: in UTF-16 every other byte of Latin text is zero."""
    if data[:2] in _MARKS:
        return "utf-16"
    half = len(data) // 2
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if half and len(data) % 2 == 0 and data[first::2].count(0) >= _TEXT_SHARE * half:
            return name
    return "utf-8"
