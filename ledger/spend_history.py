"""Spending history of another gateway by day, kept apart from the ledger's own totals.

The history makes no postings, so ledger totals stay what was charged here. A day is stored whole or
not at all; an interrupted import continues with the first missing day.
"""

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from ledger.database import in_groups
from ledger.money import PUSD_PER_USD
from ledger.orm.history import SpendHistoryRow

ROWS = 1000  # that one statement inserts
_EXACT = Context(prec=80)


class HistoryCell(NamedTuple):
    """The dimensions by which a day's requests are grouped; an empty text is unknown."""

    org: str
    team: str
    key: str
    user: str
    model: str
    provider: str


class HistorySums(NamedTuple):
    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spend_pusd: int = 0

    def plus(self, other: "HistorySums") -> "HistorySums":
        return HistorySums(*(mine + others for mine, others in zip(self, other, strict=True)))


class HistoryTotal(NamedTuple):
    """The stored totals of one source."""

    source: str
    first_day: str
    last_day: str
    sums: HistorySums


def pusd_of(text: str) -> int:
    """Convert dollars in a float's shortest decimal text to pico-USD, rounded half-even.

    Raises `ValueError` for infinities and NaN.
    """
    amount = Decimal(text)
    if not amount.is_finite():
        raise ValueError(f"`{text}` is not an amount")
    return int(_EXACT.multiply(amount, PUSD_PER_USD).to_integral_value())


def stored_days(connection: Connection, source: str) -> dict[str, int]:
    """Return the stored days of a source with the number of requests of each."""
    row = SpendHistoryRow
    query = select(row.day, func.sum(row.requests)).where(row.source == source).group_by(row.day)
    return {day: int(requests) for day, requests in connection.execute(query)}


def replace_day(
    connection: Connection, source: str, day: str, cells: Mapping[HistoryCell, HistorySums]
) -> None:
    """Store a day of a source, replacing what was stored for it."""
    row = SpendHistoryRow
    connection.execute(delete(row).where(row.source == source, row.day == day))
    rows: list[dict[str, Any]] = [
        {"source": source, "day": day, "cell": number, **cell._asdict(), **sums._asdict()}
        for number, (cell, sums) in enumerate(sorted(cells.items()))
    ]
    for some in in_groups(rows, ROWS):
        connection.execute(insert(row), some)


def history_totals(
    connection: Connection, days: tuple[str, str] = ("", "~"), team: str | None = None
) -> Iterable[HistoryTotal]:
    """Return the totals of each source over `days`: first and last day, both inclusive."""
    row = SpendHistoryRow
    query = (
        select(
            row.source, func.min(row.day), func.max(row.day), func.sum(row.requests),
            func.sum(row.failed), func.sum(row.input_tokens), func.sum(row.output_tokens),
        )
        .where(row.day >= days[0], row.day <= days[1])
        .group_by(row.source)
        .order_by(row.source)
    )  # fmt: skip
    amounts = select(row.source, row.spend_pusd).where(row.day >= days[0], row.day <= days[1])
    if team is not None:
        query, amounts = query.where(row.team == team), amounts.where(row.team == team)
    spent: dict[str, int] = {}
    for source, pusd in connection.execute(amounts):  # wide: SQLite must not add it
        spent[source] = spent.get(source, 0) + pusd
    for source, first, last, *sums in connection.execute(query):
        requests, failed, taken, made = map(int, sums)
        counted = HistorySums(requests, failed, taken, made, spent[source])
        yield HistoryTotal(source, first, last, counted)
