"""Streams that resume a background response whose client lost its first stream.

The worker that makes a response collects its events and stores them when the response ends. A
stream waits for that end, then sends the events that the client lacks. It reads the state of the
response from the database once a second.
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

LOOK_S = 1.0  # interval between two reads of the response's state
PING: Final = b": keep-alive\n\n"
_GONE: Final = "The answer was deleted."
_DRAINS: Final = "The gateway is restarting. Ask for the stream again."


class FollowBounds(NamedTuple):
    """Bounds of one worker's followers.

    `most` is the maximum number at once. `draining` returns whether the worker is stopping.
    """

    most: int
    draining: Callable[[], bool]


class ResponseFollowers:
    """Followers of background responses, one instance per worker.

    Every stream ends: at the latest when the lease of the response's worker expires.
    """

    def __init__(self, store: ObjectStore, bounds: FollowBounds) -> None:
        self._store = store
        self._bounds = bounds
        self._count = 0

    async def follow(
        self, team_id: str, response_id: str, starting_after: int | None
    ) -> AsyncIterator[bytes]:
        """Return keep-alive comments until the response ends, then events after `starting_after`.

        Raises `RequestError` 503 when this worker has its maximum number of followers.
        """
        followed = self._follow(team_id, response_id, starting_after)
        await anext(followed)  # runs up to its first yield, which counts the follower
        return followed

    async def _follow(
        self, team_id: str, response_id: str, starting_after: int | None
    ) -> AsyncIterator[bytes]:
        if self._count >= self._bounds.most:
            message = f"This worker follows {self._bounds.most} background responses already."
            raise RequestError("overloaded", message, retry_after_s=5.0)
        self._count += 1
        quiet_s = KEEP_ALIVE_S  # so that the first comment is sent at once
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
        """Return the events that the client lacks.

        Return None while the response is being made or the database is unavailable.
        """
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
    """Yield the events of an ended response that come after `starting_after`."""
    told = found.content.get("told") or ()
    return replay_events(current_response(found, now_us), starting_after, told)


def current_response(found: StoredDocument, now_us: int) -> dict[str, Any]:
    """Return the response with its current status, and an error if its worker is gone."""
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
    """Return an error event with the client's last sequence number, so a retry skips no event."""
    number = starting_after or 0
    told = {"code": "server_error", "message": message, "param": None}
    return event("error", {"type": "error", "sequence_number": number, **told})
