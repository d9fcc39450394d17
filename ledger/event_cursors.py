"""Positions of event feeds, and the lease of the host that delivers each feed.

One host delivers a feed at a time: it holds a lease on the cursor, and another host takes over when
the lease expires. The cursor advances after delivery, so each event is delivered at least once.
"""

from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Engine, Update, insert, select, update
from sqlalchemy.exc import IntegrityError

from ledger.database import read_value, write_alone
from ledger.orm.events import EventCursorRow

US_PER_S = 1_000_000
LEASE_US = 60 * US_PER_S
FIRST_WAIT_US = 5 * US_PER_S  # after a failed delivery; doubles each time
LAST_WAIT_US = 300 * US_PER_S


class EventPlace(NamedTuple):
    """A position in a feed: all seals up to `number`, and `position` events of the next seal."""

    number: int
    position: int


class EventCursor:
    """The cursor of one feed for one deliverer (`holder`, a unique name)."""

    def __init__(self, engine: Engine, feed: str, holder: str) -> None:
        self._engine, self._feed, self._holder = engine, feed, holder

    def start(self, newest: int) -> int:
        """Return the last fully delivered seal; a new feed starts after seal `newest`."""
        query = select(EventCursorRow.number).where(EventCursorRow.feed == self._feed)
        number = read_value(self._engine, query)
        if number is not None:
            return number
        row = {"feed": self._feed, "number": newest, "position": 0, "holder": "", "until_us": 0}
        with suppress(IntegrityError), self._engine.begin() as connection:  # another host was first
            connection.execute(insert(EventCursorRow), [{**row, "tries": 0}])
        return newest

    def claim(self, at_us: int) -> EventPlace | None:
        """Lease the feed for `LEASE_US` and return its position, or `None` if it is leased."""
        table = EventCursorRow
        free = (table.until_us <= at_us) | (table.holder == self._holder)
        claimed = self._mine().where(free).values(holder=self._holder, until_us=at_us + LEASE_US)
        query = select(table.number, table.position).where(table.feed == self._feed)
        with self._engine.begin() as connection:
            if not connection.execute(claimed).rowcount:
                return None
            return EventPlace(*connection.execute(query).one())

    def advance(self, place: EventPlace, at_us: int) -> bool:
        """Store the delivered position. Return false if another host has taken the lease."""
        moved = self._held().values(
            number=place.number, position=place.position, tries=0, until_us=at_us + LEASE_US
        )
        return bool(write_alone(self._engine, moved))

    def release(self) -> None:
        """Release the lease after all events were delivered; any host may continue."""
        write_alone(self._engine, self._held().values(holder="", until_us=0))

    def postpone(self, at_us: int) -> None:
        """Postpone the feed after a failed delivery, by a wait that doubles with each failure."""
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
