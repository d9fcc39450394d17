"""The price book in the database: versions are added, never edited, and read back whole."""

import msgspec
from sqlalchemy import Connection, Engine, insert, select

from ledger.drafts import Changes, PriceDraft, diff
from ledger.orm_books import PriceVersion
from ledger.prices import Price, PriceBook

UNSOURCED = ""


def load_price_book(engine: Engine) -> PriceBook:
    """Every stored version, as one immutable book."""
    with engine.connect() as connection:
        return PriceBook(_stored(connection))


def import_drafts(engine: Engine, drafts: list[PriceDraft], *, at_us: int) -> Changes:
    """Store what the drafts change against the books they name; repeating stores nothing."""
    books = {draft.book for draft in drafts}
    with engine.begin() as connection:
        current = [price for price in _stored(connection) if price.book in books]
        changes = diff(current, drafts, at_us=at_us)
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
