"""Header `x-breakeven-ignored`: names of request members and tags that had no effect."""

import re
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from gateway.request.client_response import Send

IGNORED = b"x-breakeven-ignored"
NAMES_TOLD = 32
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def listed_names(names: Sequence[str]) -> bytes:
    """Return the names as a header value; names with unusual characters are only counted."""
    plain = [name for name in names if _PLAIN_NAME.fullmatch(name)][:NAMES_TOLD]
    more = len(names) - len(plain)
    return ", ".join([*plain, *([f"and {more} more"] if more else [])]).encode("ascii")


def telling_ignored(names: Sequence[str]) -> Callable[[Send], Send]:
    """Return a wrapper of `send` that adds the names to the header in the head of the answer."""
    said = listed_names(names)

    def wrap(send: Send) -> Send:
        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                told = [value for name, value in message["headers"] if name == IGNORED]
                others = [header for header in message["headers"] if header[0] != IGNORED]
                message = {**message, "headers": [*others, (IGNORED, b", ".join([*told, said]))]}
            await send(message)

        return sending

    return wrap
