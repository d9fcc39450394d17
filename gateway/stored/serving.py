"""Composition of stored answers in a worker: the object store and the routes."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.request.inference_api import InferenceApi
from gateway.request.store.background_responses import BackgroundResponses
from gateway.request.store.object_store import ObjectStore
from gateway.request.store.response_storage import NoStoredResponses, StoredResponses
from gateway.runtime import Runtime
from gateway.stored.chat_api import chat_router
from gateway.stored.conversations_api import conversations_router
from gateway.stored.followed_response import FollowBounds
from gateway.stored.json_body import BodyLimits
from gateway.stored.not_stored import not_stored_router
from gateway.stored.responses_api import responses_router

FORGET_S = 60.0  # between two deletions of expired objects
FIRST_WORKER = 0  # the worker of a host that deletes expired objects


@dataclass(frozen=True, slots=True)
class StoredParts:
    """Stored answers of a worker. `store` is `None` if storing is disabled.

    The routes then return an error that says so.
    """

    store: ObjectStore | None = None
    background: BackgroundResponses | None = None
    routers: tuple[APIRouter, ...] = ()
    forgets: bool = False

    def chores(self) -> list[Coroutine[Any, Any, None]]:
        """Return the tasks to run in the background for the life of the worker."""
        chores = []
        if self.background is not None:
            chores.append(self.background.watch())
        if self.forgets and self.store is not None:
            chores.append(_forget(self.store))
        return chores

    async def end_background(self) -> None:
        """End all background responses, because the worker stops."""
        if self.background is not None:
            await self.background.end_all()

    async def aclose(self) -> None:
        if self.store is not None:
            await self.store.aclose()


def serve_stored(
    settings: Settings, runtime: Runtime, worker: int, clock: Clock, hot: InferenceApi
) -> StoredParts:
    """Open the worker's object store and connect it to the inference API. Return its parts."""
    section, server = settings.store, settings.server
    if not section.enabled:
        hot.storage = NoStoredResponses(unasked=True)
        return StoredParts(routers=(not_stored_router(),))
    state_dir = Path(runtime.state_dir)
    store = ObjectStore(runtime.ledger_url, state_dir, section, clock.wall_us)
    hot.storage = StoredResponses(store, server.body_limit_bytes)
    hot.background = BackgroundResponses(store, section.background_runs, hot.open_replies())
    limits = BodyLimits(server.body_limit_bytes, server.timeouts.receive_s)
    bounds = FollowBounds(section.background_runs, lambda: hot.draining)
    routers = (
        responses_router(store, bounds), conversations_router(store, limits),
        chat_router(store, limits),
    )  # fmt: skip
    return StoredParts(store, hot.background, routers, worker == FIRST_WORKER)


async def _forget(store: ObjectStore) -> None:
    """Delete expired objects, forever, every `FORGET_S` seconds."""
    while True:
        while await store.forget_expired():
            pass
        await asyncio.sleep(FORGET_S)
