"""Negotiated prices from a CSV file; every fault is reported with its line and column.

The first line names the columns, in any order; only `name` and prices are required:

    name           provider/model, as in the price book
    tier           service tier: batch, flex, priority ...; empty: standard
    above_tokens   the row's prices apply to prompts above this; empty: to every prompt
    KIND_usd_per_million    KIND: input, cached, cache_write, cache_write_1h, output, reasoning,
                            audio_input, audio_output, image_output; also _per_thousand and
                            _per_token
    usd_per_request         on the standard row only, like uplift_percent, a regional surcharge
    usd_per_search          with max_searches (maximum per request) for a chat model, on the
                            standard row only; budgets have no upper bound without a maximum
    from, until    UTC days like 2026-11-01, `until` inclusive; empty: from now, without end
    source, source_date     the contract, and the day on which it stated the price

Rows of one name and one `from` make one price: a standard row, and rows that differ by tier or
threshold. Empty cells in those take the standard row's value. Separators may be commas, semicolons
or tabs; numbers have a decimal point and no other sign.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from ledger.csvtable import CsvLine, CsvTable, CsvTableError, read_table
from ledger.journals.token_kinds import PER_UNIT
from ledger.money import PPM, MoneyError, usd_per_million_to_pusd, usd_to_pusd
from ledger.prices.book import check, tier_of
from ledger.prices.drafts import APPROVED_RANK, DraftChange, PriceDraft
from ledger.prices.rates import (
    KINDS,
    STANDARD,
    PriceError,
    PriceTerms,
    TierRates,
    overlay_rates,
    rates_from,
)

_UNITS = {"million": 1, "thousand": 1_000, "token": 1_000_000}  # to USD per million
_AMOUNT = re.compile(rf"^({'|'.join(KINDS)})_usd_per_({'|'.join(_UNITS)})$")
# Columns of charges that are not per token.
_BESIDE = {"usd_per_request": "request_pusd"} | {kind.term: kind.price for kind in PER_UNIT}
_WORDS = ("name", "tier", "above_tokens", "from", "until", "source", "source_date")
_UPLIFT, _SEARCHES = "uplift_percent", "max_searches"
# Fields of `_Row.beside` that do not make a price alone.
_NO_PRICES = frozenset(("request_pusd", "uplift_ppm", "searches_limit"))
_EXAMPLE = "input_usd_per_million"
_NUMBER = re.compile(r"^\d+(\.\d+)?([eE][+-]?\d{1,2})?$")
_US_PER_DAY = 86_400_000_000
CELL_LIMIT = 256  # characters
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Row:
    """One parsed line: amounts by token kind, other amounts, text cells, and the source line."""

    line: CsvLine
    kinds: dict[str, int]
    beside: dict[str, int]
    words: dict[str, str]
    since_us: int | None
    until_us: int | None
    source_date: str | None
    above: int

    @property
    def tier(self) -> str:
        """Return the row's tier in the price book's terms."""
        return tier_of(self.words["tier"])


def parse_price_csv(data: bytes, *, book: str) -> tuple[PriceDraft, ...]:
    """Return the file's prices. Raises `PriceError` with every fault as `LINE, COLUMN`."""
    faults: list[str] = []
    try:
        table = read_table(data, book, faults)
    except CsvTableError as error:
        raise PriceError(str(error)) from None
    _check_columns(table, book, faults)
    _refuse(faults)
    rows: dict[tuple[str, int | None], list[_Row]] = {}
    for line in table.lines:
        row = _row(line, book, faults)
        rows.setdefault((row.words["name"], row.since_us), []).append(row)
    _refuse(faults)
    drafts = [draft for same in rows.values() for draft in _drafts(same, book, faults)]
    if not drafts and not faults:
        faults.append(f"{book}: no prices: below the first line there is nothing")
    _refuse(faults)
    return tuple(drafts)


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise PriceError("\n".join(faults))


def _check_columns(table: CsvTable, book: str, faults: list[str]) -> None:
    known = [*_WORDS, *_BESIDE, _UPLIFT, _SEARCHES]
    for column in table.columns:
        if column in known or _AMOUNT.match(column):
            continue
        if column in KINDS:
            words = f"names no unit: write `{column}_usd_per_million`"
        else:
            near = get_close_matches(column, [*known, *(f"{k}_usd_per_million" for k in KINDS)], 1)
            words = f"is unknown; did you mean `{near[0]}`?" if near else "is unknown"
        faults.append(f"{book}: line {table.header}, column `{column}`: the column {words}")
    if "name" not in table.columns:
        faults.append(f"{book}: line {table.header}: the column `name` is missing")
    if not any(_AMOUNT.match(name) or name in _BESIDE for name in table.columns):
        words = f"no column has a price, such as `{_EXAMPLE}`"
        faults.append(f"{book}: line {table.header}: {words}")
    kinds = [match[1] for name in table.columns if (match := _AMOUNT.match(name))]
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    faults += [f"{book}: line {table.header}: `{item}` is stated in two units" for item in twice]


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of one line. A cell that cannot be read adds a fault with its place."""

    line: CsvLine
    book: str
    faults: list[str]

    def read(self, column: str, how: Callable[[str], T]) -> T | None:
        text = self.line.cells.get(column, "")
        if not text:
            return None
        try:
            return how(text)
        except (PriceError, MoneyError) as error:
            where = f"{self.book}: line {self.line.number}, column `{column}`"
            self.faults.append(f"{where}: {error}")
            return None


def _row(line: CsvLine, book: str, faults: list[str]) -> _Row:
    read = _Cells(line, book, faults).read
    kinds: dict[str, int] = {}
    for column in line.cells:
        if match := _AMOUNT.match(column):
            pusd = read(column, partial(_per_token, unit=match[2]))
            if pusd is not None:
                kinds[match[1]] = pusd
    beside = {}
    for column, field in _BESIDE.items():
        if (pusd := read(column, _usd)) is not None:
            beside[field] = pusd
    if (ppm := read(_UPLIFT, _ppm)) is not None:
        beside["uplift_ppm"] = ppm
    if searches := read(_SEARCHES, partial(_count, what="searches")):
        beside["searches_limit"] = searches
    words = {column: read(column, _check_cell) or "" for column in ("name", "tier", "source")}
    if not words["name"]:
        faults.append(f"{book}: line {line.number}, column `name`: is empty")
    since, until = read("from", _day), read("until", _day)
    stated = read("source_date", _day)
    return _Row(
        line,
        kinds,
        beside,
        words,
        None if since is None else _start_us(since),
        None if until is None else _start_us(until) + _US_PER_DAY,
        None if stated is None else stated.isoformat(),
        read("above_tokens", _count) or 0,
    )


def _drafts(rows: list[_Row], book: str, faults: list[str]) -> Iterator[PriceDraft]:
    """Yield the price of rows with one name and start, if the rows have no faults."""
    where = f"{book}: line {rows[0].line.number}"
    standard = [row for row in rows if _order_of(row) == (STANDARD, 0)]
    if len(standard) != 1:
        words = "has no row of the standard tier" if not standard else "has two standard rows"
        line = rows[0] if not standard else standard[1]
        faults.append(f"{book}: line {line.line.number}: `{rows[0].words['name']}` {words}")
        return
    base, others = standard[0], [row for row in rows if row is not standard[0]]
    faults += [
        f"{book}: line {row.line.number}, column `{column}`: belongs on line {base.line.number}, "
        "the standard row"
        for row in others
        for column in (*_BESIDE, _UPLIFT, _SEARCHES, "until")
        if row.line.cells.get(column)
    ]
    try:
        draft = _draft(base, others, book)
    except PriceError as error:
        faults.append(f"{where}: {error}")
        return
    trial = DraftChange(draft, draft.effective_from_us or 0).price(0)
    wrong = check(trial)
    faults += [f"{where}: {words}" for words in wrong]
    if not wrong:
        yield draft


def _draft(base: _Row, others: Sequence[_Row], book: str) -> PriceDraft:
    kinds = dict(base.kinds)
    if base.beside.keys() - _NO_PRICES:  # priced by another unit than tokens
        kinds = {"input": kinds.get("audio_input", 0), "output": 0, **kinds}
    if not any(kinds.values()) and not any(
        amount for field, amount in base.beside.items() if field != "searches_limit"
    ):
        raise PriceError(
            "every price is 0: a free model cannot be distinguished from a missing price"
        )
    rates = {row.tier: overlay_rates(kinds, row.kinds) for row in others if not row.above}
    schedules = [
        # Kinds that a tier's threshold omits take the tier's own row.
        TierRates(*_order_of(row), rates_from(overlay_rates(rates.get(row.tier, kinds), row.kinds)))
        for row in sorted(others, key=_order_of)
    ]
    return PriceDraft(
        name=base.words["name"],
        book=book,
        terms=replace(PriceTerms(rates_from(kinds), tuple(schedules)), **base.beside),
        rank=APPROVED_RANK,
        source=base.words["source"] or None,
        source_date=base.source_date,
        effective_from_us=base.since_us,
        effective_until_us=base.until_us,
    )


def _order_of(row: _Row) -> tuple[str, int]:
    return row.tier, row.above


def _usd(text: str) -> int:
    return usd_to_pusd(_number(text))


def _per_token(text: str, unit: str) -> int:
    return usd_per_million_to_pusd(_number(text) * _UNITS[unit])


def _ppm(text: str) -> int:
    ppm = _number(text) * (PPM // 100)
    if ppm != int(ppm):
        raise PriceError(f"`{text}` percent is finer than a millionth")
    return int(ppm)


def _number(text: str) -> Decimal:
    if _NUMBER.match(text):
        return Decimal(text)
    if re.match(r"^\d+,\d+$", text):
        raise PriceError(f"`{text}` has a decimal comma: write `{text.replace(',', '.')}`")
    if text.startswith("-"):
        raise PriceError(f"`{text}` is negative")
    raise PriceError(f"`{text}` is not a number: write digits and a decimal point, such as 0.15")


def _count(text: str, what: str = "tokens") -> int:
    if not re.match(r"^\d{1,9}$", text):
        raise PriceError(f"`{text}` is not a whole number of {what}, such as 200000")
    return int(text)


def _day(text: str) -> date:
    try:
        if re.match(r"^\d{4}-\d{2}-\d{2}$", text):
            return date.fromisoformat(text)
    except ValueError as error:
        raise PriceError(f"`{text}`: {error}") from None
    raise PriceError(f"`{text}` is not a date such as 2026-11-01")


def _start_us(day: date) -> int:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return int(start.timestamp() // 86_400) * _US_PER_DAY


def _check_cell(text: str) -> str:
    if len(text) > CELL_LIMIT or not text.isprintable():
        raise PriceError(f"is not 1 to {CELL_LIMIT} printable characters")
    return text
