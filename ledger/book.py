"""The price book in the database: versions are added, never edited, and read back whole."""

from collections.abc import Mapping

import msgspec
from sqlalchemy import Connection, Engine, insert, select

from ledger.database import reading
from ledger.drafts import Changes, PriceDraft, diff
from ledger.orm_books import PriceVersion
from ledger.prices import Price, PriceBook

UNSOURCED = ""


def load_price_book(engine: Engine, aliases: Mapping[str, str] | None = None) -> PriceBook:
    """Every stored version, as one immutable book; `aliases` are the configured price files'."""
    with reading(engine) as connection:
        return PriceBook(_stored(connection), aliases)


def import_drafts(engine: Engine, drafts: list[PriceDraft], *, at_us: int) -> Changes:
    """Store what the drafts of all books in use change; repeating stores nothing.

    A price file that is no longer among them is withdrawn, all its names at once.
    """
    with engine.begin() as connection:
        changes = diff(_stored(connection), drafts, at_us=at_us)
        rows = [
            {
                "name": row.draft.name,
                "since_us": row.effective_from_us,
                "price": msgspec.to_builtins(row.price(0)),
                "source": row.draft.source or UNSOURCED,
                "recorded_us": at_us,
            }
            for row in changes.rows
        ]
        if rows:
            connection.execute(insert(PriceVersion), rows)
        return changes


def _stored(connection: Connection) -> list[Price]:
    query = select(PriceVersion.version, PriceVersion.price).order_by(PriceVersion.version)
    return [
        msgspec.convert({**document, "version": version}, Price)
        for version, document in connection.execute(query)
    ]
