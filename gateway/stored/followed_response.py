"""Streams of answers that are still made: their client lost the one that it had.

The worker that makes an answer notes its pieces and stores them with its end. So a follower waits
for that end and tells what its client lacks then. Each reads the state alone once a second.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from gateway.errors import RequestError
from gateway.request.client_response import KEEP_ALIVE_S
from gateway.request.dialects.response_encoder import event
from gateway.request.dialects.responses_replay import replay_events
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.stored_document import StoredDocument

LOOK_S = 1.0  # from one look at the answer to the next
PING: Final = b": keep-alive\n\n"
_GONE: Final = "The answer was deleted."
_DRAINS: Final = "The gateway is restarting. Ask for the stream again."


class FollowBounds(NamedTuple):
    """`most`: that one worker follows at once. `draining`: whether the worker stops."""

    most: int
    draining: Callable[[], bool]


class ResponseFollowers:
    """One per worker. An answer ends by itself, at the latest with the lease of its maker."""

    def __init__(self, store: ObjectStore, bounds: FollowBounds) -> None:
        self._store = store
        self._bounds = bounds
        self._count = 0

    async def follow(
        self, team_id: str, response_id: str, starting_after: int | None
    ) -> AsyncIterator[bytes]:
        """Return comments until the answer has ended, then its events beyond `starting_after`.

        Raises `RequestError` 503 where no more can be followed here.
        """
        followed = self._follow(team_id, response_id, starting_after)
        await anext(followed)  # it has its place
        return followed

    async def _follow(
        self, team_id: str, response_id: str, starting_after: int | None
    ) -> AsyncIterator[bytes]:
        if self._count >= self._bounds.most:
            message = f"This worker follows {self._bounds.most} background responses already."
            raise RequestError("overloaded", message, retry_after_s=5.0)
        self._count += 1
        quiet_s = KEEP_ALIVE_S  # the client hears at once that it was understood
        try:
            yield b""
            while True:
                if quiet_s >= KEEP_ALIVE_S:
                    quiet_s = 0.0
                    yield PING
                if self._bounds.draining():
                    yield _broken(starting_after, _DRAINS)
                    return
                ended = await self._find_end(team_id, response_id, starting_after)
                if ended is not None:
                    for part in ended:
                        yield part
                    return
                await asyncio.sleep(LOOK_S)
                quiet_s += LOOK_S
        finally:
            self._count -= 1

    async def _find_end(
        self, team_id: str, response_id: str, starting_after: int | None
    ) -> Iterable[bytes] | None:
        """Return what the client lacks; None while it is made, or the database is away."""
        try:
            progress = await self._store.find_progress(team_id, response_id)
            if progress is not None and progress.is_made_at(self._store.wall_us()):
                return None
            found = progress and await self._store.find(team_id, response_id)
        except RequestError:
            return None
        if found is None:
            return [_broken(starting_after, _GONE)]
        return told_events(found, self._store.wall_us(), starting_after)


def told_events(found: StoredDocument, now_us: int, starting_after: int | None) -> Iterator[bytes]:
    """Yield the events of an answer that nobody makes any more, beyond those that are known."""
    told = found.content.get("told") or ()
    return replay_events(current_response(found, now_us), starting_after, told)


def current_response(found: StoredDocument, now_us: int) -> dict[str, Any]:
    """Return the answer as it stands: cancelled once that is asked for, failed with its worker."""
    response: dict[str, Any] = found.content["response"]
    status = found.status_at(now_us)
    if status == found.status:
        return response
    response = {**response, "status": status}
    if status == "failed":
        why = "The gateway's worker ended before the answer was made."
        response["error"] = {"code": "server_error", "message": why}
    return response


def _broken(starting_after: int | None, message: str) -> bytes:
    """Return an error that has the client's own number, so that its next request skips nothing."""
    number = starting_after or 0
    told = {"code": "server_error", "message": message, "param": None}
    return event("error", {"type": "error", "sequence_number": number, **told})
