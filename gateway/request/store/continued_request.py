"""A Responses request with the history that it continues, complete before it is decoded.

Everything after that (detectors, bounds, context, price, routing) sees the whole conversation, as
if the client had sent it. A chain has the tightest residency of its members.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gateway.errors import RequestError, invalid_error
from gateway.http.body import Members, decode_member, encode_raw
from gateway.request.dialects.fields import unsupported
from gateway.request.dialects.responses_input import COMPACTIONS
from gateway.request.store.compaction import CompactionReader
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_items import (
    as_items,
    is_reference,
    items_of,
    referenced_ids,
    response_of,
)
from gateway.request.store.stored_document import StoredDocument
from ledger.stored_objects import UNFINISHED, ChainError, ObjectQuery
from router.policy import tighten
from router.types import Residency

PAGE: Final = 100
OUTPUT: Final = b"call_output"  # in the type of every call output
_ENDED: Final = {"failed": "failed", "cancelled": "was cancelled"}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")  # types may be unhashable
REFERENCES_LIMIT: Final = 1_000
NOT_STORED = "answers are not kept here. Send `store: false` and the whole conversation in `input`."
NOT_IN_BATCHES = "a batch keeps no answers. Leave it out; send the whole conversation in `input`."


@dataclass(slots=True, kw_only=True)
class ContinuedRequest:
    """A request with the history that it continues, and whether its answer is stored.

    `own_input` is what this request adds, as JSON.
    """

    stores: bool
    background: bool = False
    previous: str | None = None
    conversation: str | None = None
    residency: Residency = Residency.ANY
    own_input: bytes = b"null"
    earlier: list[Any] = field(default_factory=list)


def refuse_stored(members: Members, *, unasked: bool) -> None:
    """Raise `RequestError` 400 for a request that needs stored answers, where there are none.

    `unasked`: a request without `store: false` needs them, as at OpenAI; lines of batches do not.
    """
    why = NOT_STORED if unasked else NOT_IN_BATCHES
    if decode_member(members, "store", bool, unasked):
        raise unsupported("store", why)
    for name in ("previous_response_id", "conversation", "background"):
        if name in members and bytes(members[name]) not in (b"null", b"false"):
            raise unsupported(name, why)


class RequestContinuation:
    """An expander of requests: puts what they refer to into `input`."""

    def __init__(self, store: ObjectStore, limit_bytes: int) -> None:
        """Create the expander; `limit_bytes` is the maximum size of the whole `input`."""
        self._store = store
        self._limit_bytes = limit_bytes

    async def expand(self, members: Members, team_id: str, *, stores: bool) -> ContinuedRequest:
        """Expand `input`, and set the members that the answer repeats.

        `stores`: the path makes answers. Raises `RequestError` 404 for a missing object, 413 for a
        conversation that is too large, 503 while the store is unavailable.
        """
        asked = _read(members, stores=stores)
        if asked.previous is not None:
            await self._add_chain(asked, team_id, asked.previous)
        elif asked.conversation is not None:
            await self._add_conversation(asked, team_id, asked.conversation)
        if b'"id"' in asked.own_input:
            items = as_items(decode_member(members, "input", Any))
            if referenced_ids(items):
                items = await self.resolve(asked, items, team_id)
                asked.own_input = msgspec.json.encode(items)
                members["input"] = msgspec.Raw(asked.own_input)
        if (asked.previous or asked.conversation) and OUTPUT in asked.own_input:
            refuse_orphans(asked.earlier, as_items(msgspec.json.decode(asked.own_input)))
        if asked.earlier:
            own = as_items(decode_member(members, "input", Any))
            members["input"] = encode_raw([*asked.earlier, *own])
        if len(bytes(members.get("input", b""))) > self._limit_bytes:
            raise too_long_error(self._limit_bytes)
        if b'"compaction' in bytes(members.get("input", b"")):  # or `compaction_summary`
            await self._open_compactions(asked, members, team_id)
        if stores:
            members["store"] = encode_raw(asked.stores)
        asked.earlier = []
        return asked

    async def _add_chain(self, asked: ContinuedRequest, team_id: str, last: str) -> None:
        try:
            chain = await self._store.find_chain(team_id, last, max_bytes=self._limit_bytes)
        except ChainError as error:
            if error.missing is None:
                raise too_long_error(self._limit_bytes) from error
            raise no_previous_error(last, error.missing) from error
        status = chain[-1].status_at(self._store.wall_us()) if chain else None
        if not chain or status in UNFINISHED:
            why = "is not finished: wait until its status is `completed`."
            raise invalid_error("previous_response_id", why)
        if status in _ENDED:
            why = (
                f"is a response that {_ENDED[status]}, and nothing goes on from it. Ask its turn "
                "again from the response before it, or send the conversation in `input`."
            )
            raise invalid_error("previous_response_id", why)
        for answer in chain:
            _tighten(asked, answer)
            asked.earlier += items_of(answer.content)

    async def _add_conversation(self, asked: ContinuedRequest, team_id: str, name: str) -> None:
        found = await self._store.find(team_id, name)
        if found is None or found.kind != "conversation":
            raise RequestError(
                "not_found", f"Conversation with id '{name}' not found.", param="conversation"
            )
        try:
            await self._store.check_items(team_id, name)
        except ChainError as error:
            raise too_long_error(self._limit_bytes) from error
        after, size = None, 0
        while True:
            query = ObjectQuery(
                team_id=team_id, kind="item", parent=name, after=after, limit=PAGE, descending=False
            )
            page = await self._store.list_page(query)
            items = [] if page is None else page.documents
            for item in items:
                _tighten(asked, item)
                asked.earlier.append(item.content)
            size += sum(len(msgspec.json.encode(item.content)) for item in items)
            if size > self._limit_bytes:
                raise too_long_error(self._limit_bytes)
            if page is None or not page.more:
                return
            after = items[-1].id

    async def resolve(
        self, asked: ContinuedRequest, items: Sequence[Any], team_id: str, where: str = "input"
    ) -> list[Any]:
        """Return the items with each reference replaced by its item.

        `asked` gets the residency of these items. `where` is the member that they stand in.
        """
        ids = referenced_ids(items)
        if sum(map(is_reference, items)) > REFERENCES_LIMIT:
            raise invalid_error(where, f"has more than {REFERENCES_LIMIT} references.")
        answers = {answer for item_id in ids if (answer := response_of(item_id)) is not None}
        try:
            found = await self._store.find_many(team_id, [*ids, *answers])
        except ChainError as error:
            raise too_long_error(self._limit_bytes) from error
        known = {name: item.content for name, item in found.items() if item.kind == "item"}
        for source in found.values():
            if source.kind == "response":
                known |= _named_items(source)
        for name in ids:
            if name not in known:
                place = next(
                    index for index, item in enumerate(items)
                    if is_reference(item) and item["id"] == name
                )  # fmt: skip
                raise RequestError(
                    "not_found", f"Item with id '{name}' not found.", param=f"{where}[{place}]"
                )
            _tighten(asked, found.get(name) or found[response_of(name) or ""])
        sizes = {name: len(msgspec.json.encode(known[name])) for name in ids}
        # An item may be referenced as often as a body has room for its id.
        if sum(sizes[item["id"]] for item in items if is_reference(item)) > self._limit_bytes:
            raise too_long_error(self._limit_bytes)
        return [known[item["id"]] if is_reference(item) else item for item in items]

    async def _open_compactions(
        self, asked: ContinuedRequest, members: Members, team_id: str
    ) -> None:
        """Replace each compaction by its summary, where this gateway made it for this team."""
        reader = CompactionReader(self._store, team_id)
        given = as_items(decode_member(members, "input", Any))
        items, residency = await reader.open_all(given, foreign=True)
        asked.residency = tighten(asked.residency, residency)
        members["input"] = encode_raw(items)


def _named_items(source: StoredDocument) -> dict[str, Any]:
    """Return a stored response's items by their ids.

    Ids chosen by a client are left out: they might name another response's item.
    """
    items = {item["id"]: item for item in items_of(source.content) if "id" in item}
    return {name: item for name, item in items.items() if response_of(name) == source.id}


def refuse_orphans(earlier: Sequence[Any], own: Sequence[Any]) -> None:
    """Raise `RequestError` 400 for the output of a call that was not made.

    A model would learn of a tool that it never used. Calls within a compaction are unknown, so
    requests with one are not checked.
    """
    items = [item for item in (*earlier, *own) if isinstance(item, dict)]
    if any(item.get("type") in COMPACTIONS for item in items):
        return
    outputs = {id(item) for item in items if item.get("type") in _OUTPUTS}
    made = {_call_id(item) for item in items if id(item) not in outputs}
    for index, item in enumerate(own):
        name = _call_id(item) if id(item) in outputs else None
        if name is not None and name not in made:
            told = f"No tool call found for function call output with call_id {name}."
            raise RequestError("bad_request", told, param=f"input[{index}].call_id")


def _call_id(item: Mapping[str, Any]) -> str | None:
    name = item.get("call_id")
    return name if isinstance(name, str) else None


def _read(members: Members, *, stores: bool) -> ContinuedRequest:
    previous = decode_member(members, "previous_response_id", str)
    conversation = _conversation_of(members)
    if previous is not None and conversation is not None:
        why = "cannot be sent together with `conversation`. Leave one of them out."
        raise invalid_error("previous_response_id", why)
    keeps = stores and decode_member(members, "store", bool, True)
    background = stores and decode_member(members, "background", bool, False)
    if background and not keeps:
        raise invalid_error("background", "needs `store: true`.")
    if conversation is not None:
        members["conversation"] = encode_raw({"id": conversation})
    return ContinuedRequest(
        stores=keeps,
        background=background,
        previous=previous,
        conversation=conversation,
        own_input=bytes(members.get("input", b"null")),
    )


def _conversation_of(members: Members) -> str | None:
    given = decode_member(members, "conversation", Any)
    if isinstance(given, dict):
        given = given.get("id")
        if not isinstance(given, str):
            raise invalid_error("conversation.id", "must be a string.")
    if given is not None and not isinstance(given, str):
        raise invalid_error("conversation", "must be an id, or an object with an `id`.")
    return given


def _tighten(asked: ContinuedRequest, source: StoredDocument) -> None:
    asked.residency = tighten(asked.residency, Residency(source.residency))


def too_long_error(limit_bytes: int) -> RequestError:
    """Return the error for a conversation larger than a body may be."""
    return RequestError(
        "context",
        f"The conversation is longer than {limit_bytes} bytes. Compact it "
        "(`POST /v1/responses/compact`), or begin a new one.",
        param="input",
    )


def no_previous_error(last: str, missing: str) -> RequestError:
    """Return the error for a request that continues `last`, where `missing` does not exist."""
    told = f"Previous response with id '{last}' not found."
    if missing != last:
        told = (
            f"Response '{missing}', which '{last}' continues, was deleted, expired or made room. "
            "Send the conversation in `input`."
        )
    return RequestError("no_previous_response", told, param="previous_response_id")
