"""The price book in the database: versions are added and never edited.

Every write also stores its author, time and source (`PriceImportRow`) in the same transaction.
Writers wait for each other, so readers see version numbers in order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Text, cast, func, insert, select, text

from ledger.database import read_rows, reading
from ledger.orm.books import PriceImportRow, PriceVersionRow
from ledger.prices.book import Price, PriceBook, is_open
from ledger.prices.diff import PriceImportPlan, approved
from ledger.prices.drafts import (
    APPROVED_RANK,
    BUNDLED_RANK,
    DraftChange,
    DraftChanges,
    PriceDraft,
    diff,
    states_same_amounts,
)

UNSOURCED = ""
NEWEST_PRICE_FILE = "prices.newest"  # in the run directory: the number of the newest version
# Read as text: msgspec decodes JSON in a tenth of the time that SQLAlchemy takes.
_DOCUMENT = cast(PriceVersionRow.price, Text)
_decoder = msgspec.json.Decoder(Price)
_LOCK = text("LOCK TABLE price_versions IN SHARE ROW EXCLUSIVE MODE")


class BookMovedError(Exception):
    """The prices changed between a person's preview and the approval."""


@dataclass(frozen=True, slots=True)
class ImportStamp:
    """The author of an import and its source: `digest` of its bytes, `read_on` its ISO day.

    `read_on` is `None` if only a part of the source was read.
    """

    actor: str
    origin: str  # `start`, or as `--from` named it
    digest: str | None = None
    read_on: str | None = None


@dataclass(frozen=True, slots=True)
class PriceRecord:
    """One stored version with its author and time. `actor` is `None` for old releases."""

    price: Price
    recorded_us: int
    actor: str | None
    origin: str | None


def load_price_book(engine: Engine, aliases: Mapping[str, str] | None = None) -> PriceBook:
    """Return the book of all stored versions, with the aliases of configured price files."""
    with reading(engine) as connection:
        return PriceBook(_read_stored(connection), aliases)


def stored_prices(engine: Engine) -> list[Price]:
    """Return every stored version, in the order of storing."""
    with reading(engine) as connection:
        return _read_stored(connection)


def every_price(connection: Connection) -> list[Price]:
    """Return every stored version, read in the transaction of `connection`."""
    return _read_stored(connection)


def newer_prices(engine: Engine, version: int) -> list[Price]:
    """Return the versions stored after this one."""
    with reading(engine) as connection:
        return _read_stored(connection, above=version)


def prices_of(engine: Engine, versions: Iterable[int]) -> dict[int, Price]:
    """Return the versions with these numbers, by number."""
    query = select(PriceVersionRow.version, PriceVersionRow.price).where(
        PriceVersionRow.version.in_(sorted(set(versions)))
    )
    return {number: _price(number, document) for number, document in read_rows(engine, query)}


def newest_version(connection: Connection) -> int:
    """Return the number of the version stored last, 0 in an empty book."""
    return connection.execute(select(func.max(PriceVersionRow.version))).scalar_one() or 0


def read_days(engine: Engine) -> dict[str, str]:
    """Return the ISO day, per book, on which its whole source was last read."""
    query = select(PriceImportRow.book, func.max(PriceImportRow.read_on)).group_by(
        PriceImportRow.book
    )
    return {book: day for book, day in read_rows(engine, query) if day is not None}


def records_of(engine: Engine, name: str) -> list[PriceRecord]:
    """Return every version of exactly this name, in the order of storing."""
    query = (
        select(
            PriceVersionRow.version, PriceVersionRow.price, PriceVersionRow.recorded_us,
            PriceVersionRow.recorded_by, PriceImportRow.origin,
        )
        .outerjoin(PriceImportRow, PriceImportRow.seq == PriceVersionRow.import_seq)
        .where(PriceVersionRow.name == name)
        .order_by(PriceVersionRow.version)
    )  # fmt: skip
    with reading(engine) as connection:
        return [
            PriceRecord(_price(version, document), at_us, actor, origin)
            for version, document, at_us, actor, origin in connection.execute(query)
        ]


def import_drafts(
    engine: Engine,
    drafts: Sequence[PriceDraft],
    *,
    at_us: int,
    keep_market: bool = False,
    stamp: ImportStamp | None = None,
) -> DraftChanges:
    """Store the changes in the drafts of all configured books. Repeating stores nothing.

    A price file that is no longer configured is withdrawn with all its names. Approved imports
    stay. With `keep_market`, a market list adds only names without a price of that list; another
    price for a known name waits for approval. A change that affects only the names of unread
    charges counts at once.
    """
    with engine.begin() as connection:
        return import_into(connection, drafts, at_us=at_us, keep_market=keep_market, stamp=stamp)


def import_into(
    connection: Connection,
    drafts: Sequence[PriceDraft],
    *,
    at_us: int,
    keep_market: bool = False,
    stamp: ImportStamp | None = None,
) -> DraftChanges:
    """Store drafts as `import_drafts` does, within the caller's transaction."""
    _lock_import(connection)
    stored = [row for row in _read_stored(connection) if row.rank < APPROVED_RANK]
    waiting = 0
    if keep_market:
        market = [row for row in stored if row.rank == BUNDLED_RANK]
        named = list(_newly_unread(market, drafts, at_us))
        waiting = _waiting_count(market, [item for item in drafts if item not in named], at_us)
        known = {price.name for price in market}
        drafts = [draft for draft in drafts if draft.rank or draft.name not in known]
        stored = [row for row in stored if row.rank]
        drafts += named
        names = {(draft.book, draft.name) for draft in named}
        stored += [row for row in market if (row.book, row.name) in names]
    changes = replace(diff(stored, drafts, at_us=at_us), waiting=waiting)
    _store(connection, changes.rows, stamp, at_us)
    return changes


def import_approved(
    engine: Engine,
    plan: Callable[[Sequence[Price], int], PriceImportPlan],
    seen: PriceImportPlan,
    *,
    stamp: ImportStamp,
    at_us: int,
) -> PriceImportPlan:
    """Store an approved import in one transaction, in force from `at_us` on.

    `plan` computes the import again from the stored versions. Raises `BookMovedError` if the result
    differs from `seen`.
    """
    with engine.begin() as connection:
        _lock_import(connection)
        again = plan(_read_stored(connection), at_us)
        if approved(again) != approved(seen):
            raise BookMovedError(
                "the price book has changed since the review: review the changes again"
            )
        _store(connection, again.changes.rows, stamp, at_us, book=again.book)
        return again


def _waiting_count(market: Sequence[Price], drafts: Iterable[PriceDraft], at_us: int) -> int:
    """Return the number of names whose price in the market list differs from the stored one."""
    books = {(price.book, price.name) for price in market}
    again = [draft for draft in drafts if (draft.book, draft.name) in books]
    return len({row.draft.name for row in diff(market, again, at_us=at_us).rows})


def _newly_unread(
    market: Sequence[Price], drafts: Iterable[PriceDraft], at_us: int
) -> Iterator[PriceDraft]:
    """Yield drafts that differ from the stored price only in the names of unread charges."""
    standing: dict[tuple[str, str], Price] = {}
    for price in sorted(market, key=lambda row: (row.effective_from_us, row.version)):
        if price.effective_from_us <= at_us:
            standing[price.book, price.name] = price
    for draft in drafts:
        stands = standing.get((draft.book, draft.name))
        if (
            stands is not None
            and draft.rank == BUNDLED_RANK
            and is_open(stands, at_us)
            and stands.terms.unread != draft.terms.unread
            and states_same_amounts(stands, draft)
        ):
            yield draft


def _lock_import(connection: Connection) -> None:
    """Lock the price versions on PostgreSQL. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def _store(
    connection: Connection,
    rows: Iterable[DraftChange],
    stamp: ImportStamp | None,
    at_us: int,
    book: str | None = None,
) -> None:
    by_book: dict[str, list[DraftChange]] = {} if book is None else {book: []}
    for row in rows:
        by_book.setdefault(row.draft.book, []).append(row)
    for name, own in by_book.items():
        seq = None if stamp is None else record_import(connection, name, stamp, at_us, len(own))
        values = [
            {
                "name": row.draft.name,
                "since_us": row.effective_from_us,
                "price": msgspec.to_builtins(row.price(0)),
                "source": row.draft.source or UNSOURCED,
                "recorded_us": at_us,
                "recorded_by": None if stamp is None else stamp.actor,
                "import_seq": seq,
            }
            for row in own
        ]
        if values:
            connection.execute(insert(PriceVersionRow), values)


def record_import(
    connection: Connection, book: str, stamp: ImportStamp, at_us: int, stored: int
) -> int:
    """Record that a book was read and `stored` versions were stored. Return the row's number."""
    values = {
        "at_us": at_us, "actor": stamp.actor, "origin": stamp.origin, "book": book,
        "digest": stamp.digest, "read_on": stamp.read_on, "stored": stored,
    }  # fmt: skip
    seq = connection.execute(insert(PriceImportRow).values(values).returning(PriceImportRow.seq))
    return seq.scalar_one()


def read_documents(connection: Connection, above: int = 0) -> Sequence[tuple[int, str]]:
    """Return the versions after `above` as (number, JSON text), ordered by number."""
    query = (
        select(PriceVersionRow.version, _DOCUMENT)
        .where(PriceVersionRow.version > above)
        .order_by(PriceVersionRow.version)
    )
    return [(version, document) for version, document in connection.execute(query)]


def decode_prices(documents: Iterable[tuple[int, str]]) -> list[Price]:
    """Return the prices in the documents that `read_documents` returns."""
    alike: dict[object, Any] = {}  # thousands of names share a few hundred terms and sources
    return [
        _share_equal_parts(version, _decoder.decode(document), alike)
        for version, document in documents
    ]


def _read_stored(connection: Connection, above: int = 0) -> list[Price]:
    return decode_prices(read_documents(connection, above))


def _price(version: int, document: dict[str, object]) -> Price:
    return msgspec.convert({**document, "version": version}, Price)


def _share_equal_parts(version: int, price: Price, alike: dict[object, Any]) -> Price:
    """Return the price with parts shared between equal prices, which halves the memory used."""
    return msgspec.structs.replace(
        price,
        version=version,
        terms=alike.setdefault(price.terms, price.terms),
        book=alike.setdefault(price.book, price.book),
        source=alike.setdefault(price.source, price.source),
        source_date=alike.setdefault(price.source_date, price.source_date),
    )
