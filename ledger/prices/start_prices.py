"""The prices at a start: the bundled map and the configured files, stored in the ledger.

Most starts change nothing, and comparing 3,300 drafts with the stored versions takes 0.4 s of CPU.
A start that leaves nothing to store or approve therefore writes a mark: a `PriceImportRow` with a
digest of its sources, of the code that reads and compares them, and of all stored versions. A later
start with an equal digest has nothing to store. Any other start (another map, changed versions,
another release) compares row by row.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, select

from ledger.database import reading
from ledger.orm.books import PriceImportRow
from ledger.prices.book import Price
from ledger.prices.bundled import BOOK, BundledMap, bundled_map, seed_of
from ledger.prices.drafts import PriceDraft
from ledger.prices.files import PriceFile, parse_price_file, read_price_file
from ledger.prices.stored import (
    ImportStamp,
    decode_prices,
    import_into,
    read_documents,
    record_import,
)

ORIGIN = "start"
# Modules outside this folder that affect the result. A test compares them with the imports.
CODE_OUTSIDE = (
    "csvtable.py", "journals/records.py", "journals/token_kinds.py", "model_names.py", "money.py",
    "yamltext.py",
)  # fmt: skip
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class PriceSources:
    """The texts that prices are read from. `files` are (name, text); a later file overrides."""

    bundled: BundledMap
    files: tuple[tuple[str, str], ...] = ()

    def parse_files(self) -> list[PriceFile]:
        """Return the parsed files. Raises `PriceError` with the faults of the first faulty file."""
        return [
            parse_price_file(text, book=name, rank=rank)
            for rank, (name, text) in enumerate(self.files, start=1)
        ]

    def drafts(self) -> list[PriceDraft]:
        """Return the drafts of the map and all files. Raises `PriceError`."""
        files = chain.from_iterable(file.drafts for file in self.parse_files())
        return [*seed_of(self.bundled).drafts, *files]


class StartPrices(NamedTuple):
    """Counts of a start: `stored` versions, and `waiting` names with another price in the map.

    Waiting names need a person's approval (`ledger.prices.stored.import_drafts`).
    """

    stored: int
    waiting: int


def read_sources(paths: Iterable[Path]) -> PriceSources:
    """Read the installed map and these files. Raises `PriceError` if one cannot be read."""
    return PriceSources(bundled_map(), tuple((path.name, read_price_file(path)) for path in paths))


def store_start_prices(
    engine: Engine, sources: PriceSources, *, actor: str, at_us: int
) -> StartPrices:
    """Store prices that the sources add or change. Raises `PriceError`."""
    with reading(engine) as connection:
        if _settled_documents(connection, sources, at_us) is not None:
            return StartPrices(0, 0)
    drafts, stamp = sources.drafts(), ImportStamp(actor, ORIGIN)
    with engine.begin() as connection:
        changes = import_into(connection, drafts, at_us=at_us, keep_market=True, stamp=stamp)
        if not changes.waiting:
            digest = _digest(sources, read_documents(connection))
            record_import(connection, BOOK, ImportStamp(actor, ORIGIN, digest), at_us, 0)
        return StartPrices(len(changes.rows), changes.waiting)


def settled_prices(engine: Engine, sources: PriceSources, at_us: int) -> list[Price] | None:
    """Return the stored versions if a start would not change them, otherwise `None`."""
    with reading(engine) as connection:
        documents = _settled_documents(connection, sources, at_us)
    return None if documents is None else decode_prices(documents)


def _settled_documents(
    connection: Connection, sources: PriceSources, at_us: int
) -> Sequence[tuple[int, str]] | None:
    """Return the stored versions if a mark with an equal digest exists, otherwise `None`.

    A mark counts only from its own time on: a comparison does not cover earlier times, and the
    clock may have been set back since.
    """
    documents = read_documents(connection)
    mark = select(PriceImportRow.seq).where(
        PriceImportRow.origin == ORIGIN,
        PriceImportRow.digest == _digest(sources, documents),
        PriceImportRow.at_us <= at_us,
    )
    return None if connection.execute(mark.limit(1)).first() is None else documents


def _digest(sources: PriceSources, documents: Iterable[tuple[int, str]]) -> str:
    """Return the SHA-256 of everything that decides what a start stores, in hexadecimal."""
    state = sha256(_code_digest())
    texts = [sources.bundled.text, sources.bundled.source_date or "", *chain(*sources.files)]
    for text in (*texts, *(f"{version} {document}" for version, document in documents)):
        data = text.encode()
        state.update(b"%d:" % len(data))  # separates the texts
        state.update(data)
    return state.hexdigest()


@cache
def _code_digest() -> bytes:
    """Return a digest of the code: another release may read the same map differently."""
    state = sha256()
    for path in (
        *sorted(Path(__file__).parent.glob("*.py")),
        *map(_PACKAGE.joinpath, CODE_OUTSIDE),
    ):
        state.update(sha256(path.read_bytes()).digest())
    return state.digest()
