"""Compactions: the summary of a conversation, encrypted for the client that keeps it.

`encrypted_content` can only be opened by the team that made it, and has its residency.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members
from gateway.request.dialects.answer_keeper import KeptAnswer
from gateway.request.dialects.compaction import PREFACE, SUMMARY_MARK
from gateway.request.dialects.responses_input import COMPACTIONS
from gateway.request.store.object_store import ObjectStore
from router.policy import tighten
from router.types import Residency

_KEY_BYTES: Final = 40  # a wrapped key of 32


class CompactionReader:
    """A reader of a team's compactions."""

    def __init__(self, store: ObjectStore, team_id: str) -> None:
        self._store = store
        self._team_id = team_id

    async def open_all(
        self, items: Sequence[Any], where: str = "input", *, foreign: bool = False
    ) -> tuple[list[Any], Residency]:
        """Return the items with each compaction as a message, and the tightest residency.

        `where` is the member with the items. Raises `RequestError` for one that does not decrypt.
        `foreign`: one before a message of the user stays as it is, as a session that began at
        another service sends it with every turn.
        """
        residency, opened = Residency.ANY, []
        users = [index for index, item in enumerate(items) if _is_users(item)] if foreign else []
        for index, item in enumerate(items):
            if isinstance(item, dict) and item.get("type") in COMPACTIONS:
                found = await self._open(item)
                if found is None:
                    if not users or index > users[-1]:
                        raise _unreadable_error(f"{where}[{index}]")
                    opened.append(item)
                    continue
                summary, bound = found
                residency = tighten(residency, bound)
                content = [{"type": "input_text", "text": PREFACE + summary}]
                message = {"type": "message", "role": "user", "content": content}
                opened.append({**message, **SUMMARY_MARK})
            else:
                opened.append(item)
        return opened, residency

    async def _open(self, item: dict[str, Any]) -> tuple[str, Residency] | None:
        try:
            data = b64decode(str(item.get("encrypted_content")), validate=True)
        except (Base64Error, ValueError):
            data = b""
        plain = await self._store.open_text(
            data[:_KEY_BYTES], data[_KEY_BYTES:], _owner(self._team_id)
        )
        if plain is None:
            return None
        summary, residency = msgspec.json.decode(plain, type=tuple[str, str])
        return summary, Residency(residency)


def _is_users(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user"


def _unreadable_error(place: str) -> RequestError:
    return RequestError(
        "bad_request",
        f"`{place}.encrypted_content` was not made by this gateway for this team, so it "
        "cannot be read. Leave the item out, and send its content again.",
        param=place,
    )


async def seal_summary(store: ObjectStore, team_id: str, summary: str, residency: str) -> str:
    """Return a compaction's `encrypted_content`."""
    plain = msgspec.json.encode((summary, residency))
    wrapped_key, sealed = await store.seal_text(plain, _owner(team_id))
    return b64encode(wrapped_key + sealed).decode()


def _owner(team_id: str) -> tuple[str, ...]:
    return team_id, "compaction"


class CompactionKeeper:
    """A keeper that encrypts a conversation's summary, and stores nothing."""

    background = False

    def __init__(self, store: ObjectStore, team_id: str, residency: Residency) -> None:
        self._store = store
        self._team_id = team_id
        self.residency = residency
        self.own_members: Members = {}

    def withhold(self) -> None:
        """Do nothing: no part of the request is stored."""

    def allow(self, members: Members) -> None:
        """Do nothing: no part of the request is stored."""

    async def keep(self, document: Mapping[str, Any], residency: Residency) -> KeptAnswer:
        """Return the compaction with its summary encrypted."""
        bound = tighten(residency, self.residency).value
        output = [
            {
                **item,
                "encrypted_content": await seal_summary(
                    self._store, self._team_id, item["encrypted_content"], bound
                ),
            }
            if item.get("type") == "compaction"
            else item
            for item in document["output"]
        ]
        return KeptAnswer({**document, "output": output})
