"""Long JSON is decoded member by member and piece by piece, so that others have turns in between.

A piece of a list that decodes as a list ends where a member of the whole ends: how JSON is read
does not depend on what follows. What cannot be cut so is decoded at once.
"""

from typing import Any, Final

import msgspec

from gateway.content.turn_taker import TurnTaker

_WHOLE: Final = 128 * 1024  # bytes that are decoded at once
_FAR: Final = 4096  # bytes in which a place to cut is looked for
_AT_ONCE: Final = 64  # members that are freed at once
_BACKSLASH: Final = ord("\\")
_ESCAPE: Final = 12  # bytes of the longest escape: two halves of one character
_LISTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


async def decode_long(raw: bytes | memoryview | msgspec.Raw, turns: TurnTaker) -> Any:
    """Return what `msgspec.json.decode` does. Raises what that does."""
    view = memoryview(raw)
    if len(view) <= _WHOLE:
        return msgspec.json.decode(view)
    first = bytes(view[:64]).lstrip()[:1]
    if first == b"[":
        return await _decode_list(bytes(view), turns)
    if first == b"{":
        inners = _OBJECTS.decode(view)
        await turns.rest()
        return {key: await decode_long(inner, turns) for key, inner in inners.items()}
    return await _decode_text(bytes(view), turns) if first == b'"' else msgspec.json.decode(view)


async def _decode_list(raw: bytes, turns: TurnTaker) -> list[Any]:
    made: list[Any] = []
    at = raw.index(b"[") + 1
    while True:
        cut = raw.find(b"},", at + _WHOLE, at + _WHOLE + _FAR) + 1
        inners = _members_until(raw, at, cut) if cut else None
        if inners is None:
            cut, inners = 0, _LISTS.decode(b"[" + raw[at:])
        for inner in inners:
            await turns.rest()
            made.append(await decode_long(inner, turns))
        if not cut:
            return made
        at = cut + 1


def _members_until(raw: bytes, at: int, cut: int) -> list[msgspec.Raw] | None:
    """Return the members of a list between two places; None: the second is inside of a member."""
    try:
        return _LISTS.decode(b"".join((b"[", memoryview(raw)[at:cut], b"]")))
    except msgspec.DecodeError:
        return None


async def _decode_text(raw: bytes, turns: TurnTaker) -> str:
    """Decode a long string; a piece of it ends behind no escape, and with a whole character."""
    parts: list[str] = []
    at = raw.index(b'"') + 1
    while len(raw) - at > _WHOLE + _FAR:
        places = range(at + _WHOLE, at + _WHOLE + _FAR)
        cut = next((place for place in places if _is_whole(raw, place)), None)
        if cut is None:
            break
        parts.append(msgspec.json.decode(b'"%b"' % raw[at:cut], type=str))
        at = cut
        await turns.rest()
    parts.append(msgspec.json.decode(b'"' + raw[at:], type=str))
    return "".join(parts)


def _is_whole(raw: bytes, place: int) -> bool:
    return b"\\" not in raw[place - _ESCAPE : place] and raw[place] & 0xC0 != 0x80


async def count_quotes(raw: bytes, turns: TurnTaker) -> int:
    """Return how many quotation marks of encoded JSON begin or end a string."""
    quotes = at = 0
    while at < len(raw):
        cut = min(len(raw), at + _WHOLE)
        while cut < len(raw) and raw[cut - 1] == _BACKSLASH:
            cut += 1  # what a backslash escapes stays with it
        piece = raw[at:cut]
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        quotes += piece.count(b'"')
        at = cut
        await turns.rest()
    return quotes


async def let_go(value: Any, turns: TurnTaker) -> None:
    """Empty a large value piece by piece: to free it at once takes as long as to make it."""
    if isinstance(value, dict):
        for inner in value.values():
            await let_go(inner, turns)
    elif isinstance(value, list):
        while value:
            for inner in value[-_AT_ONCE:]:
                if isinstance(inner, list | dict):
                    await let_go(inner, turns)
            del value[-_AT_ONCE:]
            await turns.rest()
