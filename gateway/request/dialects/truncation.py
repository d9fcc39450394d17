"""`truncation: auto` of Responses: drops the oldest turns until a target's context fits.

Instructions, the user's last message and the last turn stay; a call stays with its output. A
conversation that would begin with an answer gets a user line first, since many chat templates
require one, and the model learns that something is missing.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from gateway.request.dialects.conversation import Message

LEFT_OUT: Final = "[Earlier parts of this conversation were left out: they exceed the context.]"
LEAST_SHARE: Final = 16  # share of droppable bytes dropped at once, which limits the steps
_NOTE: Final[Message] = {"role": "user", "content": LEFT_OUT}


def drop_oldest(messages: Sequence[Message], least_bytes: int) -> list[Message] | None:
    """Return the messages without the oldest, by at least `least_bytes` where possible.

    Returns None where nothing can be dropped.
    """
    head = 0
    while head < len(messages) and messages[head]["role"] == "system":
        head += 1
    parts = _parts([message for message in messages[head:] if message is not _NOTE])
    said = [number for number, part in enumerate(parts) if part[0]["role"] == "user"]
    stay = {len(parts) - 1, said[-1] if said else -1}
    sizes = {
        number: len(msgspec.json.encode(part))
        for number, part in enumerate(parts)
        if number not in stay
    }
    if not sizes:
        return None
    wanted, dropped = max(least_bytes, 1, sum(sizes.values()) // LEAST_SHARE), 0
    kept: list[Message] = []
    for number, part in enumerate(parts):
        if number in sizes and dropped < wanted:
            dropped += sizes[number]
        else:
            kept += part
    note = [] if kept[0]["role"] == "user" else [_NOTE]
    return [*messages[:head], *note, *kept]


def _parts(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Return the units that stay or go as one: a message, or calls with their outputs."""
    starts = [
        index
        for index, message in enumerate(messages)
        if index == 0 or not (message["role"] == "tool" or _shows_results(messages, index))
    ]
    return [messages[a:b] for a, b in pairwise([*starts, len(messages)])]


def _shows_results(messages: Sequence[dict[str, Any]], index: int) -> bool:
    """Return whether a user turn has pictures of a tool's result, which cannot hold them."""
    message, before = messages[index], messages[index - 1]
    follows = message["role"] == "user" and before["role"] == "tool"
    return follows and isinstance(message["content"], list)
