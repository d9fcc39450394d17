"""Reads of a provider's invoices for matching: posted ones as bills, others as announced.

How an invoice was posted follows from its entries (`invoice_entries.is_added`). Lines of a format
with charges for several days name their charge. For lines that an earlier release imported, the
charge follows from how it is spread over its days.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, select

from ledger.accounts import adjustments
from ledger.instants import DAY_US, day_number
from ledger.invoices.billed_periods import BilledAmount, PostedBill
from ledger.invoices.claim_matching import UnpostedBill
from ledger.invoices.invoice_entries import invoice_of, is_added
from ledger.orm.books import PostingRow
from ledger.orm.invoices import InvoiceItemRow, InvoiceRow

SPREADS = "focus"  # the format with charges for several days


def read_bills(
    connection: Connection, provider: str
) -> tuple[list[PostedBill], list[UnpostedBill]]:
    """Return the provider's posted invoices in order of posting, and the others."""
    table, party = InvoiceRow, f"provider:{provider}"
    is_posted = and_(table.party == party, table.posted_us.is_not(None))
    amounts, differences = _amounts(connection, is_posted), posted_differences(connection, provider)
    posted: list[PostedBill] = []
    unposted: list[UnpostedBill] = []
    headers = (
        select(table.id, table.first_day, table.last_day, table.posted_us)
        .where(table.party == party)
        .order_by(table.posted_us, table.id)
    )
    for number, first_day, last_day, posted_us in connection.execute(headers):
        first, last = day_number(first_day), day_number(last_day)
        if posted_us is None:
            unposted.append(UnpostedBill(number, first, last))
            continue
        lines: dict[int, int] = defaultdict(int)
        for amount in amounts[number]:
            lines[amount.day] += amount.pusd
        adds = is_added(lines, differences[number])
        posted.append(PostedBill(first, last, adds, tuple(amounts[number])))
    return posted, unposted


class InvoiceSpan(NamedTuple):
    """The header of a provider's invoice. `utc_offset_min` is `None` if the zone is unknown."""

    number: int
    provider: str
    first: int
    last: int
    places: int
    utc_offset_min: int | None


def known_offset(connection: Connection, provider: str) -> int | None:
    """Return the offset of the provider's newest posted bill with a known zone, in minutes."""
    table = InvoiceRow
    query = (
        select(table.utc_offset_min)
        .where(
            table.party == f"provider:{provider}",
            table.posted_us.is_not(None),
            table.utc_offset_min.is_not(None),
        )
        .order_by(table.posted_us.desc(), table.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def posted_spans(connection: Connection, provider: str) -> list[InvoiceSpan]:
    """Return the headers of the provider's posted invoices."""
    table, party = InvoiceRow, f"provider:{provider}"
    query = select(
        table.id, table.first_day, table.last_day, table.places, table.utc_offset_min
    ).where(table.party == party, table.posted_us.is_not(None))
    return [
        InvoiceSpan(number, provider, day_number(first), day_number(last), places, offset_min)
        for number, first, last, places, offset_min in connection.execute(query)
    ]


def invoice_amounts(connection: Connection, number: int) -> list[BilledAmount]:
    """Return the lines of one invoice, posted or not."""
    return _amounts(connection, InvoiceRow.id == number)[number]


def _amounts(connection: Connection, wanted: ColumnElement[bool]) -> dict[int, list[BilledAmount]]:
    """Return the lines of these invoices, by number."""
    item = InvoiceItemRow
    query = (
        select(
            item.invoice_id, InvoiceRow.format,
            item.charge, item.day, item.amount_pusd, item.item, item.project, item.quantity,
            item.unit,
        )
        .join(InvoiceRow, InvoiceRow.id == item.invoice_id)
        .where(wanted)
        .order_by(item.invoice_id, item.id)
    )  # fmt: skip
    rows: dict[int, list[tuple[Any, ...]]] = {}
    charges: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    unnamed: dict[int, list[tuple[Any, ...]]] = {}
    for number, format_, charge, *row in connection.execute(query):
        if charge is not None:
            charges.setdefault((number, charge), []).append(tuple(row))
        else:
            (unnamed if format_ == SPREADS else rows).setdefault(number, []).append(tuple(row))
    amounts: dict[int, list[BilledAmount]] = defaultdict(list)
    runs = [(number, [line]) for number, lines in rows.items() for line in lines]
    runs += [(number, lines) for (number, _), lines in charges.items()]
    runs += [(number, run) for number, lines in unnamed.items() for run in _runs(lines)]
    for number, run in runs:
        stretch = (day_number(run[0][0]), day_number(run[-1][0])) if len(run) > 1 else None
        amounts[number] += [
            BilledAmount(day_number(day), name, int(pusd), stretch) for day, pusd, name, *_ in run
        ]
    return amounts


def _runs(lines: Sequence[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """Group lines that are equal shares of one charge, day after day in the file's order.

    Equal charges of consecutive days look the same and are grouped too. Lines of metered days
    differ in amount or quantity. The first and last day of a charge that starts or ends within a
    day have smaller shares and stay separate.
    """
    runs: list[list[tuple[Any, ...]]] = []
    for line in lines:
        if runs and _is_next_share(runs[-1][-1], line):
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def _is_next_share(before: tuple[Any, ...], line: tuple[Any, ...]) -> bool:
    (day, pusd, *rest), (next_day, next_pusd, *next_rest) = before, line
    # The largest remainder method adds one pico-USD to some of the equal shares.
    return rest == next_rest and _follows(day, next_day) and abs(pusd - next_pusd) <= 1


def _follows(day: date, other: date) -> bool:
    return other.toordinal() == day.toordinal() + 1


def posted_differences(connection: Connection, account: str) -> dict[int, dict[int, int]]:
    """Return the amounts that each invoice's posting changed, by number and day.

    `account` is the party's adjustment account: a provider's name, or `gpu:POOL`.
    """
    table = PostingRow
    query = select(table.entry_id, table.at_us, table.amount_pusd).where(
        table.account == adjustments(account)
    )
    changed: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for entry, at_us, pusd in connection.execute(query):
        number = invoice_of(entry)
        if number is not None:
            changed[number][at_us // DAY_US] += int(pusd)
    return changed
