"""JSON body of a request, decoded one level deep: values keep their bytes.

The gateway reads and rewrites a few members. All others pass through unchanged, so that new
parameters of a vendor work at once. `gateway.http.member_rules` lists the members that no target
gets.
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
FEW_MEMBERS = 64  # up to this many are compared in place; more are joined
MEMBERS_LIMIT = 1024  # more would block the event loop for all streams
SEARCHED_BYTES = 1024 * 1024  # longer bodies are not searched for the fault, for the same reason
PLACE_LIMIT = 256
SEARCHED_LEVELS = 5  # depth of a text in a message's content part

_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_NEXT = re.compile(rb"[ \t\r\n]*([,}])")
_OPEN = re.compile(rb"[ \t\r\n]*\{")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

# The decoder's names of types, in JSON's terms.
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
    """Split the top-level object into raw values.

    Raises `RequestError` (400) for invalid JSON, another type than an object, or a repeated key.
    """
    try:
        members = _decode_members(text)
    except UNREADABLE as error:
        refuse_unreadable(text, error)
    if nesting.IS_NEEDED and nesting.is_too_deep(text):
        raise RequestError("bad_request", TOO_DEEP)
    if len(members) > MEMBERS_LIMIT:
        raise RequestError("bad_request", f"The body has more than {MEMBERS_LIMIT} members.")
    refuse_repeats(text, members)
    if not text.isascii() and not _is_utf8(text):  # raw values are not decoded
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
    """Raise `RequestError` for a repeated key; parsers differ in which value they keep."""
    if _is_all(text, members):
        return
    repeated = _repeated_key(text, members)
    if repeated is not None:
        words = f"`{repeated}` stands twice in the body."
        raise RequestError("duplicate_key", words, param=repeated)


def holds(text: bytes, words: bytes) -> bool:
    """Return whether the text contains `words`, with a search from its end.

    In CPython, `rfind` is four to eight times as fast as `in` for two or more bytes: `in` takes 0.3
    ms in 400 KB.
    """
    if words[:1] == b"\\" and b"\\" not in text:
        return False
    return text.rfind(words) >= 0


def _is_all(text: bytes, members: Members) -> bool:
    """Return whether the text, in a common JSON style, consists of exactly these members.

    A repeated key would make the text longer. False proves nothing, because other styles exist.
    Values are compared in place (0.02 ms for 400 KB); joining copies took 1.4 ms.
    """
    if len(members) > FEW_MEMBERS:  # with so many members, copies of the values are small
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
    """Return the cached decoder of a member's type."""
    return msgspec.json.Decoder(kind).decode


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _refuse_unicode(text: bytes, *, is_json: bool = False) -> None:
    """Raise a 400 that names the member with a lone surrogate or a byte that is not UTF-8.

    Both become surrogates in a lenient decoder and cannot be encoded. A body that is also invalid
    JSON otherwise is not judged here. With `is_json`, the body is always rejected, even if the
    fault is hidden by a repeated key or cannot be located.
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
        f"{f'`{place}`' if place else 'The body'} contains invalid Unicode: a lone surrogate or a "
        "byte that is not UTF-8. Send valid UTF-8.",
        param=place or None,
    )


def _fault_path(value: Any) -> str:
    """Return the path of the first text that cannot be encoded, such as `messages[0]`."""
    path = ""
    for _ in range(SEARCHED_LEVELS):
        if isinstance(value, dict):
            steps = [(f".{key}" if path else key, inner) for key, inner in value.items()]
        elif isinstance(value, list):
            steps = [(f"[{index}]", inner) for index, inner in enumerate(value)]
        else:
            break
        found = next((step for step in steps if not _encodable(step[1])), None)
        if found is None or not _encodable(found[0]):  # the fault is in a member's name
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
    """Return the first repeated key, or None.

    A decoder keeps the last value of a repeated key. So a walk over the text either meets a key
    twice, or a value that is not the decoded one.
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
        if after is None:  # a longer value that starts with the decoded one
            return key
        if after[1] == b"}":
            return None
        position = after.end()
    return None


def decode_member(members: Members, name: str, kind: Any, default: Any = None) -> Any:
    """Decode one member as `kind`; JSON null counts as absent.

    Raises `RequestError` (400) naming the member if its type is wrong. Where an integer is
    expected, `5.0` is accepted (as JSON Schema does) and rewritten as `5`, because not every target
    takes it.
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
    """Return the decoder's message as the end of a sentence about a member."""
    found = _EXPECTED.match(words)
    if found is None:
        return f": {words}"
    wanted = " or ".join(_JSON_TYPES.get(word, word) for word in found[1].split(" | "))
    given = f", not {_JSON_TYPES.get(found[2], found[2])}" if found[2] else ""
    return f" must be {wanted}{given}{words[found.end() :]}"


def decode_object(text: bytes, kind: Any) -> Any:
    """Decode a whole body as `kind`; `5.0` is accepted as 5.

    Raises msgspec's errors, and `RequestError` for a repeated key.
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
    """Decode the value as `kind` with `5.0` as 5; None if that does not help."""
    try:
        return _decoder(kind)(encode(_whole(msgspec.json.decode(given))))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        for place, item in enumerate(value):  # in place, to save memory for long lists
            value[place] = _whole(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            value[name] = _whole(item)
    return value


def encode_raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
