"""Positions of event feeds, by address."""

from sqlalchemy import BigInteger

from ledger.orm.base import LedgerBase, Stored, define_column


class EventCursorRow(LedgerBase):
    """The position of one feed, and the process that sends its events until `until_us`.

    All events of the seals up to `number` were sent, and `position` events of the next seal.
    """

    __tablename__ = "event_cursors"

    feed: Stored[str] = define_column(primary_key=True)
    number: Stored[int] = define_column(BigInteger)
    position: Stored[int]
    holder: Stored[str]  # empty: none
    until_us: Stored[int] = define_column(BigInteger)  # no other process sends before
    tries: Stored[int]  # since the last delivery
