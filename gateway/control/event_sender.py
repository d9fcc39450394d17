"""Webhook feed of settled attempts and refused requests, posted in batches.

Events are sent some seconds after they are sealed, in seal order, from one host at a time. A failed
post is repeated, so an event may arrive twice with the same `id`; no event in the ledger is
skipped. A feed begins with the first seal after it was configured.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock, next_tick
from gateway.config.credentials import webhook
from gateway.config.settings import Settings
from gateway.control.signed_webhook import SignedWebhook, webhook_client
from ledger.commit_watch import CommitWatch
from ledger.database import reading
from ledger.event_cursors import EventCursor, EventPlace
from ledger.exports.settled_events import SealedSpan, events_of, newest_seal, seals_behind

LOOK_S = 2.0
SEALS_AT_ONCE = 100
FEED = "webhook"

log = logging.getLogger("breakeven.events")

if TYPE_CHECKING:  # imported where events are posted
    import httpx


class EventSender:
    """Sender of ledger events; one per host, in the telemetry process."""

    def __init__(
        self,
        settings: Settings,
        ledger: Engine,
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._ledger, self._clock = ledger, clock
        self._batch = settings.events.batch
        self._cursor = EventCursor(ledger, FEED, uuid4().hex)
        address, secret = webhook(settings.events, "events", environ)
        self._webhook = (
            None if address is None else SignedWebhook("the events webhook", address, secret, clock)
        )

    async def run(self) -> None:
        """Post until cancelled; return at once if no webhook is configured."""
        if self._webhook is None:
            return
        with closing(CommitWatch(self._ledger)) as watch:
            async with webhook_client() as client:
                await self._repeat(watch, client)

    async def _repeat(self, watch: CommitWatch, client: "httpx.AsyncClient") -> None:
        is_done = False
        while True:
            try:
                if not (is_done and watch.is_still()):
                    await asyncio.to_thread(watch.version)
                    is_done = await self.send_events(client)
            except DBAPIError as error:
                is_done = False
                log.warning("events wait: cannot read the ledger error=%s", error.orig)
            await next_tick(LOOK_S)

    async def send_events(self, client: "httpx.AsyncClient") -> bool:
        """Post new seals if this host has the turn. Return false if some are left."""
        if not await asyncio.to_thread(self._is_behind):
            return True
        place = await asyncio.to_thread(self._cursor.claim, self._clock.wall_us())
        while place is not None:
            seals = await asyncio.to_thread(self._read_seals, place.number)
            if not seals:
                await asyncio.to_thread(self._cursor.release)
                return True
            for seal in seals:
                place = await self._send_seal(client, seal, place)
                if place is None:
                    break
        return False

    async def _send_seal(
        self, client: "httpx.AsyncClient", seal: SealedSpan, place: EventPlace
    ) -> EventPlace | None:
        """Post the events of a seal. Return the next place, or `None` if a post failed."""
        assert self._webhook is not None, "who has no webhook sends nothing"
        events = await asyncio.to_thread(self._read_events, seal)
        told = place.position
        while told < len(events):
            batch = events[told : told + self._batch]
            message_id = f"{FEED}:{seal.number}:{told}"
            message = {"type": "events", "id": message_id, "events": batch}
            if not await self._webhook.post(client, message_id, message):
                await asyncio.to_thread(self._cursor.postpone, self._clock.wall_us())
                return None
            told += len(batch)
            if told < len(events) and not await self._advance(EventPlace(place.number, told)):
                return None
        behind = EventPlace(seal.number, 0)
        return behind if await self._advance(behind) else None

    async def _advance(self, place: EventPlace) -> bool:
        return await asyncio.to_thread(self._cursor.advance, place, self._clock.wall_us())

    def _is_behind(self) -> bool:
        """Return whether there are unsent seals; only reads, so that an idle ledger stays idle."""
        with reading(self._ledger) as connection:
            newest = newest_seal(connection)
        return self._cursor.start(newest) < newest

    def _read_seals(self, number: int) -> list[SealedSpan]:
        with reading(self._ledger) as connection:
            return list(seals_behind(connection, number, SEALS_AT_ONCE))

    def _read_events(self, seal: SealedSpan) -> list[dict[str, Any]]:
        with reading(self._ledger) as connection:
            return events_of(connection, seal)
