"""Positions of event feeds, by address."""

from sqlalchemy import BigInteger

from ledger.orm.base import LedgerBase, Stored, define_column


class EventCursorRow(LedgerBase):
    """One feed: what was told, and who tells on until when.

    All events of the seals up to `number` were told, and `position` events of the one behind it.
    """

    __tablename__ = "event_cursors"

    feed: Stored[str] = define_column(primary_key=True)
    number: Stored[int] = define_column(BigInteger)
    position: Stored[int]
    holder: Stored[str]  # empty: nobody
    until_us: Stored[int] = define_column(BigInteger)  # nobody else tells before
    tries: Stored[int]  # since something was heard
