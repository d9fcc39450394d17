"""A request's JSON, opened one level deep: values keep their bytes, each key stands once.

The gateway reads and rewrites a handful of members; everything else passes through untouched, so
that a new parameter of a vendor works on the day it appears. Which members reach no target says
`gateway.http.member_rules`.
"""

import json
import re
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

import msgspec

from gateway.errors import RequestError
from gateway.http import nesting

EMPTY = "The body is empty. Send a JSON object."
TOO_DEEP = "The body is nested too deeply."
FEW_MEMBERS = 64  # each compared in its place; more are joined at once
MEMBERS_LIMIT = 1024  # walking more would hold up the loop that all streams share
SEARCHED_BYTES = 1024 * 1024  # so would looking for the fault in a longer body
PLACE_LIMIT = 256
SEARCHED_LEVELS = 5  # as deep as the text of a message's part lies

_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_NEXT = re.compile(rb"[ \t\r\n]*([,}])")
_OPEN = re.compile(rb"[ \t\r\n]*\{")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

# The decoder's words for types, in those of JSON.
_EXPECTED = re.compile(r"Expected `([^`]+)`(?:, got `(\w+)`)?")
_JSON_TYPES = {
    "str": "a string", "bool": "true or false", "int": "a whole number", "float": "a number",
    "array": "a list", "object": "an object",
}  # fmt: skip

Members = dict[str, msgspec.Raw]
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_decode_members = msgspec.json.Decoder(Members).decode
encode = msgspec.json.encode


def decode_members(text: bytes) -> Members:
    """Split the top-level object into raw values; 400 on anything that is not one, or repeats."""
    try:
        members = _decode_members(text)
    except UNREADABLE as error:
        refuse_unreadable(text, error)
    if nesting.IS_NEEDED and nesting.is_too_deep(text):
        raise RequestError("bad_request", TOO_DEEP)
    if len(members) > MEMBERS_LIMIT:
        raise RequestError("bad_request", f"The body has more than {MEMBERS_LIMIT} members.")
    refuse_repeats(text, members)
    if not text.isascii() and not _is_utf8(text):  # the decoder does not look into values
        _refuse_unicode(text, is_json=True)
    return members


def refuse_unreadable(text: bytes, error: Exception) -> NoReturn:
    """Raise `RequestError` for a body of which a decoder raised one of `UNREADABLE`."""
    if isinstance(error, RecursionError):
        raise RequestError("bad_request", TOO_DEEP) from error
    if isinstance(error, msgspec.ValidationError):
        raise RequestError("bad_request", "The body must be a JSON object.") from error
    # A lone surrogate is "truncated" in the decoder's words.
    if _SURROGATE.search(text) or not _is_utf8(text):
        _refuse_unicode(text)
    told = f"The body is not valid JSON: {error}" if text.strip() else EMPTY
    raise RequestError("bad_request", told) from error


def refuse_repeats(text: bytes, members: Members) -> None:
    """Raise `RequestError` for a name that stands twice: nobody could say which one counts."""
    if _is_all(text, members):
        return
    repeated = _repeated_key(text, members)
    if repeated is not None:
        words = f"`{repeated}` stands twice in the body."
        raise RequestError("duplicate_key", words, param=repeated)


def holds(text: bytes, words: bytes) -> bool:
    """Return whether the words stand anywhere: in a long text, CPython is faster from its end.

    `in` takes four to eight times as long: 0.3 ms for two bytes in 400 KB, but 0.02 for one byte.
    """
    if words[:1] == b"\\" and b"\\" not in text:
        return False
    return text.rfind(words) >= 0


def _is_all(text: bytes, members: Members) -> bool:
    """Whether the text, written in one of the usual ways, holds what was kept and no more.

    A repeated key would be more. False proves nothing: there are other ways to write JSON. Values
    are compared in their places: to join copies of them took 1.4 ms of 400 KB, this takes 0.02.
    """
    if len(members) > FEW_MEMBERS:  # of whose values no copies are large
        more = len(text) - len(encode(members))
        if more != 2 * len(members) - 1:
            return more == 0 and encode(members) == text
        each = [encode(key) + b": " + bytes(value) for key, value in members.items()]
        return b"{%b}" % b", ".join(each) == text
    names = [encode(key) for key in members]
    values = [memoryview(value) for value in members.values()]
    bare = sum(map(len, names)) + sum(map(len, values)) + 2 * len(names) + 1
    if not names or len(text) == bare:
        comma, colon = b",", b":"
    elif len(text) == bare + 2 * len(names) - 1:
        comma, colon = b", ", b": "
    else:
        return False
    at, before = 0, b"{"
    for name, value in zip(names, values, strict=True):
        head = before + name + colon
        if not text.startswith(head, at) or not text.startswith(value, at + len(head)):
            return False
        at, before = at + len(head) + len(value), comma
    return text[at:] == (b"}" if names else b"{}")


@cache
def _decoder(kind: Any) -> Any:
    """Made once for each of the few types that members have."""
    return msgspec.json.Decoder(kind).decode


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_unicode(text: bytes, *, is_json: bool = False) -> None:
    """400 when lone surrogates, escaped or not, or stray bytes are what is wrong; names the place.

    Read leniently, both become surrogates, which cannot be encoded. A body that is no JSON in
    other ways too is not judged here; one that is, to the decoder, is refused in any case, also
    where what is wrong stands under a key that stands there again or cannot be read here.
    """
    place = ""
    if len(text) <= SEARCHED_BYTES:
        try:
            document = json.loads(text.decode(errors="surrogateescape"))
        except (ValueError, RecursionError):
            if not is_json:
                return
        else:
            if not _encodable(document):
                place = _fault_path(document)[:PLACE_LIMIT]
            elif not is_json:
                return
    elif not is_json and _is_utf8(text):
        return
    raise RequestError(
        "bad_request",
        f"{f'`{place}`' if place else 'The body'} holds invalid Unicode: a lone surrogate or a "
        "byte that is no UTF-8. Send whole characters.",
        param=place or None,
    )


def _fault_path(value: Any) -> str:
    """Return the path of the first text that cannot be encoded: `messages[0]`."""
    path = ""
    for _ in range(SEARCHED_LEVELS):
        if isinstance(value, dict):
            steps = [(f".{key}" if path else key, inner) for key, inner in value.items()]
        elif isinstance(value, list):
            steps = [(f"[{index}]", inner) for index, inner in enumerate(value)]
        else:
            break
        found = next((step for step in steps if not _encodable(step[1])), None)
        if found is None or not _encodable(found[0]):  # a member's name is at fault
            break
        path, value = path + found[0], found[1]
    return path


def _encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _repeated_key(text: bytes, members: Members) -> str | None:
    """The first key that stands twice, or None.

    A decoder keeps a repeated key's last value, so walking the text beside the decoded values
    either meets a key again or a value that is not the one kept.
    """
    opening = _OPEN.match(text)
    assert opening is not None  # the decoder accepted an object
    position = opening.end()
    seen: set[str] = set()
    while len(seen) < len(members) or position < len(text):
        match = _KEY.match(text, position)
        if match is None:
            return None
        key: str = msgspec.json.decode(match[1])
        raw = bytes(members[key])
        position = match.end()
        if key in seen or text[position : position + len(raw)] != raw:
            return key
        seen.add(key)
        after = _NEXT.match(text, position + len(raw))
        if after is None:  # a longer value that begins with the kept one
            return key
        if after[1] == b"}":
            return None
        position = after.end()
    return None


def decode_member(members: Members, name: str, kind: Any, default: Any = None) -> Any:
    """One member decoded as `kind`; a wrong type is a 400 that names it. JSON null is absent.

    Some languages write every number as `5.0`, which JSON Schema counts as an integer, too: where
    one is wanted it is written again as `5`, because not every target takes it.
    """
    given = members.get(name)
    if given is None or bytes(given) == b"null":
        return default
    try:
        return _decoder(kind)(given)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        found = _with_integers(given, kind)
        if found is not None:
            members[name] = encode_raw(found)
            return found
        words, _, place = str(error).partition(" - at `$")
        where = name if "[...]" in place else name + place.removesuffix("`")
        raise RequestError("bad_request", f"`{where}`{_type_fault(words)}.", param=name) from error
    except RecursionError as error:
        raise RequestError("bad_request", f"`{name}` is nested too deeply.", param=name) from error


def _type_fault(words: str) -> str:
    """Return the decoder's finding as the end of a sentence on a member."""
    found = _EXPECTED.match(words)
    if found is None:
        return f": {words}"
    wanted = " or ".join(_JSON_TYPES.get(word, word) for word in found[1].split(" | "))
    given = f", not {_JSON_TYPES.get(found[2], found[2])}" if found[2] else ""
    return f" must be {wanted}{given}{words[found.end() :]}"


def decode_object(text: bytes, kind: Any) -> Any:
    """Return a whole body as `kind`, with `5.0` as 5.

    Raises: what msgspec's decoder raises; `RequestError` where a name stands twice.
    """
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        refuse_repeats(text, _decode_members(text))
    try:
        return _decoder(kind)(text)
    except msgspec.ValidationError:
        found = _with_integers(text, kind)
        if found is None:
            raise
        return found


def _with_integers(given: bytes | msgspec.Raw, kind: Any) -> Any:
    """The value as `kind`, with `5.0` as 5; None when that is not what is wrong."""
    try:
        return _decoder(kind)(encode(_whole(msgspec.json.decode(given))))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        for place, item in enumerate(value):  # in place: a list of many small ones is large
            value[place] = _whole(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            value[name] = _whole(item)
    return value


def encode_raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
