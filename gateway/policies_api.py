"""`/v1/organization/policies`: the verbs of `breakeven policy` for who holds a key for them.

A key with the scope `policies` reads sets and has new ones judged; one with `policies:apply` also
puts sets in force and takes them back. Whatever is put in force goes the way of the command line:
into the ledger, whole, and every gateway follows. What blocks runs in a thread, one at a time.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Query, Request
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from starlette.requests import ClientDisconnect

from gateway import policyverbs as verbs
from gateway.access import caller
from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.following import FOLLOW_S
from gateway.policysets import examine_set
from gateway.settings import Settings, version
from ledger.identity import Identity

BODY_LIMIT = 1024 * 1024
NOTE_LIMIT = 500  # characters
AT_ONCE = 8  # in work and waiting
LISTED, LISTED_MOST = 20, 100
NAME = "the set"
RETRY_S = 2.0
T = TypeVar("T")

_Note = Annotated[str, msgspec.Meta(max_length=NOTE_LIMIT)]


class GivenSet(msgspec.Struct, forbid_unknown_fields=True):
    """`policies`: YAML, as a file of `breakeven policy apply`. `follows`: the set seen in force."""

    policies: str
    note: _Note | None = None
    follows: int | None = None


class GoingBack(msgspec.Struct, forbid_unknown_fields=True):
    """Without `set` the one before the newest; `to_file`: those of the configuration file."""

    set: int | None = None
    to_file: bool = False
    note: _Note | None = None
    follows: int | None = None


def _body(required: list[str], **members: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": required,
        "properties": members,
        "additionalProperties": False,
    }
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_NOTE = {"type": ["string", "null"], "maxLength": NOTE_LIMIT, "description": "why"}
_FOLLOWS = {
    "type": ["integer", "null"],
    "description": "the set that its author saw in force; another one by now is a 409",
}
_YAML = {"type": "string", "description": "YAML with `policies`, as a configuration file has them"}
_SET = _body(["policies"], policies=_YAML, note=_NOTE, follows=_FOLLOWS)
_BACK = _body(
    [],
    set={"type": ["integer", "null"], "description": "of the history; default: the last"},
    to_file={"type": "boolean", "description": "those of the configuration file"},
    note=_NOTE,
    follows=_FOLLOWS,
)


class PolicyDesk:
    """One per worker: the database and who may use it here."""

    def __init__(self, settings: Settings, make_engine: Callable[[], Engine], clock: Clock) -> None:
        """`settings`: the configuration file's, under which sets are judged."""
        self.settings = settings
        self.clock = clock
        self._make_engine = make_engine
        self._turn = asyncio.Lock()
        self._here = 0

    async def call(self, work: Callable[[Engine], T]) -> T:
        """In a thread; raises what the client is told."""
        if self._here >= AT_ONCE:
            raise RequestError("overloaded", "Too many wait already.", retry_after_s=RETRY_S)
        self._here += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._work, work)
        except verbs.Moved as error:
            raise RequestError("policies_moved", f"{error}.") from error
        except verbs.Impossible as error:
            raise RequestError("bad_request", f"{error}.".replace("..", ".")) from error
        except DBAPIError as error:
            message = "The ledger is away at the moment."
            raise RequestError("unavailable", message, retry_after_s=RETRY_S) from error
        finally:
            self._here -= 1

    async def body(self, request: Request, kind: type[T]) -> T:
        """Within the size limit and the receive deadline; every member known."""
        text, patience_s = b"", self.settings.server.timeouts.receive_s
        try:
            async with asyncio.timeout(patience_s):
                async for part in request.stream():
                    text += part
                    if len(text) > BODY_LIMIT:
                        words = f"The body is larger than {BODY_LIMIT} bytes."
                        raise RequestError("too_large", words)
            return msgspec.json.decode(text, type=kind)
        except TimeoutError as error:
            raise RequestError("slow_client", "The body did not arrive in time.") from error
        except ClientDisconnect as error:
            raise RequestError("bad_request", "The client hung up.") from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RequestError("bad_request", f"The body: {error}.") from error

    def _work(self, work: Callable[[Engine], T]) -> T:
        """Rare, so nothing stays open for it."""
        engine = self._make_engine()
        try:
            return work(engine)
        finally:
            engine.dispose()


def policies_router(desk: PolicyDesk) -> APIRouter:
    router = APIRouter(prefix="/v1/organization/policies", tags=["organization"])
    _add_reads(router, desk)
    _add_changes(router, desk)
    return router


def _add_reads(router: APIRouter, desk: PolicyDesk) -> None:
    settings = desk.settings

    @router.get("", summary="The policies in force, and since when", operation_id="policies_show")
    async def show() -> dict[str, Any]:
        document, _, rules = await desk.call(lambda engine: verbs.shown(engine, settings))
        return {**document, "fault": rules.fault}

    @router.post(
        "/check", summary="Every fault of a set; puts nothing in force", openapi_extra=_SET,
        operation_id="policies_check",
    )  # fmt: skip
    async def check(request: Request) -> dict[str, Any]:
        given = await desk.body(request, GivenSet)
        return await desk.call(lambda _: verbs.checked(examine_set(given.policies, settings, NAME)))

    @router.post(
        "/diff", summary="What a set would change, line by line", openapi_extra=_SET,
        operation_id="policies_diff",
    )  # fmt: skip
    async def diff(request: Request) -> dict[str, Any]:
        given = await desk.body(request, GivenSet)

        def work(engine: Engine) -> dict[str, Any]:
            change = verbs.fitting(given.policies, settings, NAME)
            return {"changes": verbs.changes(engine, settings, change.new)}

        return await desk.call(work)

    @router.get(
        "/history", summary="Which sets were put in force, when and by whom, the newest first",
        operation_id="policies_history",
    )  # fmt: skip
    async def history(
        limit: Annotated[int, Query(ge=1, le=LISTED_MOST)] = LISTED,
    ) -> dict[str, Any]:
        found = await desk.call(lambda engine: verbs.past(engine, settings, limit))
        return {"object": "list", "data": found}


def _add_changes(router: APIRouter, desk: PolicyDesk) -> None:
    settings = desk.settings

    @router.post(
        "/apply", summary=f"Put a set in force; gateways follow within {FOLLOW_S:g} s",
        openapi_extra=_SET, operation_id="policies_apply",
    )  # fmt: skip
    async def apply(request: Request) -> dict[str, Any]:
        identity = caller(request)
        given = await desk.body(request, GivenSet)
        author = _author(desk, identity, given.note)
        return await desk.call(
            lambda engine: _put(
                engine, settings, verbs.fitting(given.policies, settings, NAME), author,
                given.follows,
            )
        )  # fmt: skip

    @router.post(
        "/rollback", summary="Put an earlier set in force again, as a new entry of the history",
        openapi_extra=_BACK, operation_id="policies_rollback",
    )  # fmt: skip
    async def rollback(request: Request) -> dict[str, Any]:
        identity = caller(request)
        given = await desk.body(request, GoingBack)
        author = _author(desk, identity, given.note)
        return await desk.call(
            lambda engine: _put(
                engine, settings,
                verbs.earlier(engine, settings, given.set, to_file=given.to_file), author,
                given.follows,
            )
        )  # fmt: skip


def _author(desk: PolicyDesk, identity: Identity, note: str | None) -> verbs.Author:
    return verbs.Author(identity.user_id or f"key:{identity.key_id}", note, desk.clock.wall_us())


def _put(
    engine: Engine,
    settings: Settings,
    change: verbs.Change,
    author: verbs.Author,
    follows: int | None,
) -> dict[str, Any]:
    lines = verbs.changes(engine, settings, change.new)
    number = verbs.newest(engine)
    if lines:
        number = verbs.put_in_force(engine, change, author, follows=follows)
    return {"set": number, "changes": lines, "version": version(change.new), "by": author.by}
