"""Long JSON is decoded member by member, so that others have turns in between."""

from typing import Any, Final

import msgspec

from gateway.content.turn_taker import TurnTaker

_WHOLE: Final = 128 * 1024  # bytes that are decoded at once
_LISTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


async def decode_long(raw: bytes | memoryview | msgspec.Raw, turns: TurnTaker) -> Any:
    """Return what `msgspec.json.decode` does. Raises what that does."""
    view = memoryview(raw)
    if len(view) <= _WHOLE:
        return msgspec.json.decode(view)
    first = bytes(view[:64]).lstrip()[:1]
    if first == b"[":
        made = []
        for inner in _LISTS.decode(view):
            made.append(await decode_long(inner, turns))
            await turns.rest()
        return made
    if first == b"{":
        return {
            key: await decode_long(inner, turns) for key, inner in _OBJECTS.decode(view).items()
        }
    return msgspec.json.decode(view)
