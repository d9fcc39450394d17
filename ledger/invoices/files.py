"""Invoices as providers and clouds give them, read into plain lines: pure, and whole or refused.

* `openai`: answers of OpenAI's `GET /v1/organization/costs`, one page or several (a JSON list, or
  one page a line), grouped by line item and project as far as they were asked so;
* `csv`: a line of titles with `date` and `amount`, and where there is one `item` (or `model`,
  `line_item`), `project`, `quantity`, `unit`, `currency`;
* `focus`: FOCUS CSV of a cloud (1.0 and later): `BilledCost` spread over the UTC days of its
  charge period, which is all instants from `ChargePeriodStart` on and before `ChargePeriodEnd`.

Amounts are USD, read as decimals and never as floats. Dates are instants, in any spelling of
`ledger.instants`; days are UTC. Every fault is told at once.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from itertools import pairwise
from typing import Any

from ledger.instants import DAY_US, EXAMPLES, InstantError, day_of, instant_us, time_in_days
from ledger.money import MoneyError, split_largest_remainder, usd_to_pusd_rounded
from ledger.prices.rates import BIGINT_LIMIT

FORMATS = ("openai", "csv", "focus")
FAULTS_SHOWN = 20
DAYS_LIMIT = 366  # of one charge's period
DAY_S = 86_400
_ITEM = ("item", "model", "line_item")
_AMOUNT = ("amount", "amount_usd", "cost", "cost_usd")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_YEARS = range(2000, 2101)


class InvoiceError(ValueError):
    """A file that is no invoice; `faults` says every reason, with its line where it has one."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        shown = self.faults[:FAULTS_SHOWN]
        more = len(self.faults) - len(shown)
        super().__init__("\n".join((*shown, *([f"... and {more} more"] if more else []))))


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """What one day of one item cost. `quantity` counts `unit`s (tokens, hours), if it was told."""

    day: date
    item: str
    amount_pusd: int
    project: str | None = None
    quantity: Decimal | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class InvoiceFile:
    """`places`: the most decimal places of an amount; half of the last one is its rounding.

    `digest` is the hash of the whole text; `offset_min`: minutes by which its days are ahead of
    UTC's.
    """

    format: str
    lines: tuple[InvoiceLine, ...]
    places: int
    digest: str
    offset_min: int = 0

    @property
    def total_pusd(self) -> int:
        return sum(line.amount_pusd for line in self.lines)


def parse(text: str, format_: str | None = None) -> InvoiceFile:
    """Raises `InvoiceError`; without a format it is told from the text."""
    text = text.removeprefix("\ufeff")
    chosen = format_ or _format_of(text)
    reader = _Reader()
    lines = tuple(_READERS[chosen](reader, text))
    if not lines and not reader.faults:
        reader.faults.append("it has no line")
    sums: dict[date, int] = {}
    for line in lines:
        sums[line.day] = sums.get(line.day, 0) + line.amount_pusd
    reader.faults += [
        f"{day}: more in one day than the books can post"
        for day, pusd in sums.items()
        if abs(pusd) >= BIGINT_LIMIT // 2
    ]
    if reader.faults:
        raise InvoiceError(reader.faults)
    return InvoiceFile(chosen, lines, reader.places, sha256(text.encode()).hexdigest())


def _format_of(text: str) -> str:
    if text.lstrip()[:1] in ("{", "["):
        return "openai"
    return "focus" if "BilledCost" in text.partition("\n")[0] else "csv"


class _Reader:
    """What is gathered while reading: faults, and how fine amounts are."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.places = 0

    def amount(self, value: Any, where: str, currency: str | None) -> int | None:
        """Pico-USD; foreign figures may carry more digits than they mean."""
        if (currency or "USD").upper() != "USD":
            self.faults.append(f"{where}: the currency is {currency}; amounts must be USD")
            return None
        said = str(value).strip()
        if not _NUMBER.fullmatch(said):
            self.faults.append(f"{where}: {value!r} is no amount (write 1234.56)")
            return None
        usd = Decimal(said)
        try:
            pusd = usd_to_pusd_rounded(usd)
        except (InvalidOperation, MoneyError):
            self.faults.append(f"{where}: {value} is more than one line can hold")
            return None
        if abs(pusd) >= BIGINT_LIMIT:
            self.faults.append(f"{where}: {value} is more than one line can hold")
            return None
        exponent = usd.normalize().as_tuple().exponent
        self.places = max(self.places, -exponent if isinstance(exponent, int) else 0)
        return pusd

    def number(self, value: Any, where: str) -> Decimal | None:
        if value in (None, ""):
            return None
        if _NUMBER.fullmatch(str(value).strip()):
            return Decimal(str(value).strip())
        self.faults.append(f"{where}: {value!r} is no quantity")
        return None

    def instant(self, value: str, where: str, column: str) -> int | None:
        """Microseconds since the epoch."""
        place = f"{where}: column `{column}`"
        try:
            at_us = instant_us(value)
        except InstantError as error:
            self.faults.append(f"{place}: {error}")
            return None
        if day_of(at_us).year not in _YEARS:
            self.faults.append(f"{place}: {value!r} is a date of another century; {EXAMPLES}")
            return None
        return at_us


def _openai(reader: _Reader, text: str) -> Iterator[InvoiceLine]:
    page: Any = None
    starts: list[int] = []
    for number, page in enumerate(_pages(reader, text), 1):
        where = f"page {number}"
        if not isinstance(page, dict) or not isinstance(page.get("data"), list):
            reader.faults.append(f"{where}: no answer of /v1/organization/costs (no `data` list)")
            return
        for bucket in page["data"]:
            yield from _bucket(reader, where, bucket, starts)
    if isinstance(page, dict) and page.get("has_more"):
        reader.faults.append(f"it is not whole: ask for page={page.get('next_page')}, too")
    for before, after in pairwise(sorted(starts)):
        if after - before != DAY_S:
            day = datetime.fromtimestamp(before, UTC).date()
            what = "stands twice" if after == before else "is not followed by the next day"
            reader.faults.append(f"{day} {what}: give every page once")


def _pages(reader: _Reader, text: str) -> Iterator[Any]:
    try:
        document = json.loads(text, parse_float=Decimal)
    except RecursionError:
        reader.faults.append("line 1: nested too deeply")
        return
    except ValueError:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    yield json.loads(line, parse_float=Decimal)
                except ValueError:
                    reader.faults.append(f"line {number}: no JSON")
        return
    yield from document if isinstance(document, list) else (document,)


def _bucket(reader: _Reader, where: str, bucket: Any, starts: list[int]) -> Iterator[InvoiceLine]:
    try:
        start_s, results = int(bucket["start_time"]), list(bucket["results"])
        end_s = int(bucket.get("end_time") or start_s + DAY_S)
        day = datetime.fromtimestamp(start_s, UTC).date()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        reader.faults.append(f"{where}: a bucket has no `start_time` or no `results`")
        return
    if start_s % DAY_S or end_s - start_s != DAY_S:
        reader.faults.append(f"{where}: a bucket that is no UTC day; ask for bucket_width=1d")
        return
    starts.append(start_s)
    for result in results:
        amount = result.get("amount") if isinstance(result, dict) else None
        if not isinstance(amount, dict):
            reader.faults.append(f"{where}: a result of {day} has no `amount`")
            continue
        pusd = reader.amount(amount.get("value"), f"{where}, {day}", amount.get("currency"))
        if pusd is not None:
            quantity = reader.number(result.get("quantity"), f"{where}, {day}")
            texts = [result.get(name) for name in ("line_item", "project_id", "quantity_unit")]
            item, project, unit = (text if isinstance(text, str) else None for text in texts)
            yield InvoiceLine(day, item or "", pusd, project, quantity, unit)


def _csv(reader: _Reader, text: str) -> Iterator[InvoiceLine]:
    for where, row in _rows(reader, text, {"date": ("date", "day"), "amount": _AMOUNT}):
        named = {key.strip().lower(): value for key, value in row.items() if key}
        title = "date" if named.get("date") or "day" not in named else "day"
        at_us = reader.instant(named.get(title, ""), where, title)
        currency = next((named[title] for title in named if "currency" in title), None)
        pusd = reader.amount(_first(named, _AMOUNT), where, currency or None)
        quantity = reader.number(named.get("quantity"), where)
        if at_us is not None and pusd is not None:
            item, project = _first(named, _ITEM), named.get("project") or None
            yield InvoiceLine(
                day_of(at_us), item, pusd, project, quantity, named.get("unit") or None
            )


def _focus(reader: _Reader, text: str) -> Iterator[InvoiceLine]:
    wanted = {name: (name,) for name in ("BilledCost", "ChargePeriodStart")}
    for where, row in _rows(reader, text, wanted):
        period = _charge_period(reader, where, row)
        pusd = reader.amount(row["BilledCost"], where, row.get("BillingCurrency") or None)
        quantity = reader.number(row.get("ConsumedQuantity"), where)
        if period is None or pusd is None:
            continue
        category = row.get("ChargeCategory") or "Usage"
        item = row.get("ResourceId") or row.get("ResourceName") or row.get("SkuId") or ""
        if category != "Usage":
            item = f"{category}: {item or row.get('ChargeDescription') or ''}".strip()
        unit, account = row.get("ConsumedUnit") or None, row.get("SubAccountId") or None
        line = InvoiceLine(day_of(period[0]), item, pusd, account, quantity, unit)
        yield from _spread(line, *period)


def _charge_period(reader: _Reader, where: str, row: Mapping[str, str]) -> tuple[int, int] | None:
    """First instant of a charge, and the first one after it; a charge without an end is a day's."""
    start_us = reader.instant(row["ChargePeriodStart"], where, "ChargePeriodStart")
    end = (row.get("ChargePeriodEnd") or "").strip()
    end_us = reader.instant(end, where, "ChargePeriodEnd") if end else start_us
    if start_us is None or end_us is None:
        return None
    if end_us < start_us:
        reader.faults.append(f"{where}: its period ends before it begins")
        return None
    days = -(-end_us // DAY_US) - start_us // DAY_US
    if days > DAYS_LIMIT:
        reader.faults.append(f"{where}: a charge for {days} days; split it into years")
        return None
    return start_us, end_us


def _spread(line: InvoiceLine, start_us: int, end_us: int) -> Iterator[InvoiceLine]:
    """A line for each day that the period touches, by the time in it; the sum is exact."""
    days, times_us = zip(*time_in_days(start_us, end_us), strict=True)
    whole_us = sum(times_us)
    parts = split_largest_remainder(line.amount_pusd, times_us)
    for day, time_us, pusd in zip(days, times_us, parts, strict=True):
        part = None if line.quantity is None else line.quantity * time_us / whole_us
        yield replace(line, day=day, amount_pusd=pusd, quantity=part)


def _rows(
    reader: _Reader, text: str, wanted: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row with its line; a title that is missing ends the reading."""
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # a comma where none of them stands
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    titles = {(title or "").strip() for title in rows.fieldnames or ()}
    titles |= {title.lower() for title in titles}
    missing = [name for name, words in wanted.items() if not titles.intersection(words)]
    if missing:
        reader.faults.append(
            f"line 1: no column {' and no '.join(f'`{each_name}`' for each_name in missing)}"
        )
        return
    for row in rows:
        where = f"line {rows.line_num}"
        if None in row or None in row.values():
            reader.faults.append(f"{where}: it has not as many cells as the first line has titles")
        elif any(value.strip() for value in row.values()):
            yield where, row


def _first(row: Mapping[str, str], names: Iterable[str]) -> str:
    return next((row[name].strip() for name in names if row.get(name)), "")


_READERS = {"openai": _openai, "csv": _csv, "focus": _focus}
