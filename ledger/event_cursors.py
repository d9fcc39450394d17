"""Positions of event feeds, and the host that continues each.

One host tells at a time: it holds the cursor for a while, and another one follows when that while
is over. The cursor moves behind what was heard, so an event may be told twice and never not at all.
"""

from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Engine, Update, insert, select, update
from sqlalchemy.exc import IntegrityError

from ledger.database import read_value, write_alone
from ledger.orm.events import EventCursorRow

US_PER_S = 1_000_000
LEASE_US = 60 * US_PER_S
FIRST_WAIT_US = 5 * US_PER_S  # after what was not heard; twice as long each time
LAST_WAIT_US = 300 * US_PER_S


class EventPlace(NamedTuple):
    """All of the seals up to `number` was told, and `position` events of the one behind it."""

    number: int
    position: int


class EventCursor:
    """One feed, as one teller (`holder`, unique among all) sees it."""

    def __init__(self, engine: Engine, feed: str, holder: str) -> None:
        self._engine, self._feed, self._holder = engine, feed, holder

    def start(self, newest: int) -> int:
        """Return the seal up to which all was told; a new feed begins behind seal `newest`."""
        query = select(EventCursorRow.number).where(EventCursorRow.feed == self._feed)
        number = read_value(self._engine, query)
        if number is not None:
            return number
        row = {"feed": self._feed, "number": newest, "position": 0, "holder": "", "until_us": 0}
        with suppress(IntegrityError), self._engine.begin() as connection:  # another host was first
            connection.execute(insert(EventCursorRow), [{**row, "tries": 0}])
        return newest

    def claim(self, at_us: int) -> EventPlace | None:
        """Return where to go on, if this teller may for the next `LEASE_US`; else None."""
        table = EventCursorRow
        free = (table.until_us <= at_us) | (table.holder == self._holder)
        claimed = self._mine().where(free).values(holder=self._holder, until_us=at_us + LEASE_US)
        query = select(table.number, table.position).where(table.feed == self._feed)
        with self._engine.begin() as connection:
            if not connection.execute(claimed).rowcount:
                return None
            return EventPlace(*connection.execute(query).one())

    def advance(self, place: EventPlace, at_us: int) -> bool:
        """Note what was heard; False: another teller has taken over."""
        moved = self._held().values(
            number=place.number, position=place.position, tries=0, until_us=at_us + LEASE_US
        )
        return bool(write_alone(self._engine, moved))

    def release(self) -> None:
        """Note that all was told: anybody may tell on."""
        write_alone(self._engine, self._held().values(holder="", until_us=0))

    def postpone(self, at_us: int) -> None:
        """Note that nobody heard: nobody tells for a while, ever longer."""
        table = EventCursorRow
        with self._engine.begin() as connection:
            query = select(table.tries).where(
                table.feed == self._feed, table.holder == self._holder
            )
            tries = connection.execute(query).scalar()
            if tries is not None:
                wait_us = min(LAST_WAIT_US, FIRST_WAIT_US << min(tries, 10))
                held = self._held()
                held = held.values(holder="", tries=tries + 1, until_us=at_us + wait_us)
                connection.execute(held)

    def _mine(self) -> Update:
        return update(EventCursorRow).where(EventCursorRow.feed == self._feed)

    def _held(self) -> Update:
        return self._mine().where(EventCursorRow.holder == self._holder)
