"""The price book in the database: versions are added, never edited, and read back whole.

What stores versions also stores who did it, when, and from what (`PriceImportRow`), in the same
transaction. Whoever stores waits for whoever does: version numbers are seen in their order.
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
NEWEST_PRICE_FILE = "prices.newest"  # in the run directory: the newest version, as key generations
# As text: msgspec reads it in a tenth of the time that SQLAlchemy takes to make objects of it.
_DOCUMENT = cast(PriceVersionRow.price, Text)
_decoder = msgspec.json.Decoder(Price)
_LOCK = text("LOCK TABLE price_versions IN SHARE ROW EXCLUSIVE MODE")


class BookMovedError(Exception):
    """Between a person's look and the storing, somebody else changed what it was about."""


@dataclass(frozen=True, slots=True)
class ImportStamp:
    """The author of an import and its source: `digest` of its bytes, `read_on` its day.

    `read_on` is None where only a part of the source was looked at.
    """

    actor: str
    origin: str  # `start`, or as `--from` named it
    digest: str | None = None
    read_on: str | None = None


@dataclass(frozen=True, slots=True)
class PriceRecord:
    """One stored version with its circumstances; `actor` is None for those of older programs."""

    price: Price
    recorded_us: int
    actor: str | None
    origin: str | None


def load_price_book(engine: Engine, aliases: Mapping[str, str] | None = None) -> PriceBook:
    """Return the book of all stored versions; `aliases` are those of configured price files."""
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
    """Return these versions by their numbers."""
    query = select(PriceVersionRow.version, PriceVersionRow.price).where(
        PriceVersionRow.version.in_(sorted(set(versions)))
    )
    return {number: _price(number, document) for number, document in read_rows(engine, query)}


def newest_version(connection: Connection) -> int:
    """Return the number of the version that was stored last; 0 in an empty book."""
    return connection.execute(select(func.max(PriceVersionRow.version))).scalar_one() or 0


def read_days(engine: Engine) -> dict[str, str]:
    """Return the ISO day, per book, on which its source was last read as a whole."""
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
    """Store what the drafts of all configured books change; repeating stores nothing.

    A price file that is no longer among them is withdrawn, all its names at once; what a person
    approved stays. `keep_market`: a market's list only adds names that have no price of its kind;
    another price for one that has waits for approval. That it has charges which its terms do not
    say is no other price, and counts at once.
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
    """Do what `import_drafts` does in a transaction that goes on."""
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
    """Store what a person saw and approved, all or nothing, in force from `at_us` on.

    `plan` makes it again of what is stored by now. Raises `BookMovedError` if that differs.
    """
    with engine.begin() as connection:
        _lock_import(connection)
        again = plan(_read_stored(connection), at_us)
        if approved(again) != approved(seen):
            raise BookMovedError("the price book was changed meanwhile: look at the changes again")
        _store(connection, again.changes.rows, stamp, at_us, book=again.book)
        return again


def _waiting_count(market: Sequence[Price], drafts: Iterable[PriceDraft], at_us: int) -> int:
    """Return names of a market's list that it states otherwise than it was stored."""
    books = {(price.book, price.name) for price in market}
    again = [draft for draft in drafts if (draft.book, draft.name) in books]
    return len({row.draft.name for row in diff(market, again, at_us=at_us).rows})


def _newly_unread(
    market: Sequence[Price], drafts: Iterable[PriceDraft], at_us: int
) -> Iterator[PriceDraft]:
    """Drafts that state the same amounts as the stored price, and other names of what is unread."""
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
    """SQLite's transactions of writers are so by themselves."""
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
    """Write down a reading of a book that stored so many versions; return its number."""
    values = {
        "at_us": at_us, "actor": stamp.actor, "origin": stamp.origin, "book": book,
        "digest": stamp.digest, "read_on": stamp.read_on, "stored": stored,
    }  # fmt: skip
    seq = connection.execute(insert(PriceImportRow).values(values).returning(PriceImportRow.seq))
    return seq.scalar_one()


def read_documents(connection: Connection, above: int = 0) -> Sequence[tuple[int, str]]:
    """Return the versions after `above` as they are stored: number and JSON text, by number."""
    query = (
        select(PriceVersionRow.version, _DOCUMENT)
        .where(PriceVersionRow.version > above)
        .order_by(PriceVersionRow.version)
    )
    return [(version, document) for version, document in connection.execute(query)]


def decode_prices(documents: Iterable[tuple[int, str]]) -> list[Price]:
    """Return the prices of what `read_documents` read."""
    alike: dict[object, Any] = {}  # thousands of names have some hundred terms and sources
    return [
        _share_equal_parts(version, _decoder.decode(document), alike)
        for version, document in documents
    ]


def _read_stored(connection: Connection, above: int = 0) -> list[Price]:
    return decode_prices(read_documents(connection, above))


def _price(version: int, document: dict[str, object]) -> Price:
    return msgspec.convert({**document, "version": version}, Price)


def _share_equal_parts(version: int, price: Price, alike: dict[object, Any]) -> Price:
    """Return the price with parts that equal ones share, which halves a book's memory."""
    return msgspec.structs.replace(
        price,
        version=version,
        terms=alike.setdefault(price.terms, price.terms),
        book=alike.setdefault(price.book, price.book),
        source=alike.setdefault(price.source, price.source),
        source_date=alike.setdefault(price.source_date, price.source_date),
    )
