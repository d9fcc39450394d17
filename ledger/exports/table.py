"""The parts of an export: columns with a kind each, and rows of plain values in their order.

Rows come from an iterator and are never held: ten million of them need the memory of some
thousand. Money is integer pico-USD until it is written, as decimal text or a decimal type in USD
with twelve places, and never a float. Times are microseconds since the epoch until they are
written as ISO 8601 in UTC. How a kind is written is the writers' affair (`delimited`,
`parquet`); what the columns are is the tables' (`attempts`, `focus`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from fractions import Fraction

from ledger.spans import Scope

Value = str | int | bool | Fraction | None
Row = Sequence[Value]
Reached = Callable[[int], None]  # told how far in time an export has come, in microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ColumnKind(Enum):
    """The reading of a column's values; every kind may be `None`."""

    TEXT = auto()
    INTEGER = auto()
    FLAG = auto()
    INSTANT = auto()  # int: microseconds since the epoch, written with six places of a second
    SECOND = auto()  # the same, written in whole seconds
    USD = auto()  # int: pico-USD, written with twelve places of a dollar
    PRICE = auto()  # Fraction: pico-USD per unit, written exactly, or rounded beyond 24 places
    QUANTITY = auto()  # int or Fraction, written as a decimal with a point


class ExportError(ValueError):
    """An export that cannot be made as asked; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ExportColumn:
    name: str
    kind: ColumnKind = ColumnKind.TEXT


def moment(at_us: int, *, digits: bool = True) -> str:
    """`2026-11-01T00:00:00.000000Z`, exact; without `digits` in whole seconds."""
    text = (_EPOCH + timedelta(microseconds=at_us)).isoformat(
        timespec="microseconds" if digits else "seconds"
    )
    return text.removesuffix("+00:00") + "Z"


def slices(scope: Scope, width_us: int) -> Iterator[Scope]:
    """The scope cut at the multiples of `width_us`: a query for each bounds what it adds up."""
    start_us = scope.start_us
    while start_us < scope.end_us:
        end_us = min(scope.end_us, start_us - start_us % width_us + width_us)
        yield Scope(start_us, end_us, scope.team)
        start_us = end_us
