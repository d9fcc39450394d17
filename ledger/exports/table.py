"""The common form of exports: columns with a kind each, and rows of plain values in order.

Rows come from an iterator and are not collected, so ten million of them need the memory of a few
thousand. Money is integer pico-USD until it is written as decimal text or decimal type, in USD with
twelve decimals, never as a float. Times are microseconds since the epoch until they are written as
ISO 8601 in UTC. The writers decide how a kind is written (`delimited`, `parquet`); the tables
define the columns (`attempts`, `focus`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from fractions import Fraction

from ledger.spans import Scope

Value = str | int | bool | Fraction | None
Row = Sequence[Value]
Reached = Callable[[int], None]  # called with the time that an export has reached, microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ColumnKind(Enum):
    """The kind of a column's values. Every kind allows `None`."""

    TEXT = auto()
    INTEGER = auto()
    FLAG = auto()
    INSTANT = auto()  # int: microseconds since the epoch, written with six decimals of a second
    SECOND = auto()  # int: microseconds since the epoch, written in whole seconds
    USD = auto()  # int: pico-USD, written in USD with twelve decimals
    PRICE = auto()  # Fraction: pico-USD per unit, written exactly, up to 24 decimals
    QUANTITY = auto()  # int or Fraction, written as a decimal with a point


class ExportError(ValueError):
    """An export that cannot be made; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ExportColumn:
    name: str
    kind: ColumnKind = ColumnKind.TEXT


def moment(at_us: int, *, digits: bool = True) -> str:
    """Return ISO 8601 such as `2026-11-01T00:00:00.000000Z`; whole seconds without `digits`."""
    text = (_EPOCH + timedelta(microseconds=at_us)).isoformat(
        timespec="microseconds" if digits else "seconds"
    )
    return text.removesuffix("+00:00") + "Z"


def slices(scope: Scope, width_us: int) -> Iterator[Scope]:
    """Yield the scope cut at multiples of `width_us`, to limit what one query reads."""
    start_us = scope.start_us
    while start_us < scope.end_us:
        end_us = min(scope.end_us, start_us - start_us % width_us + width_us)
        yield Scope(start_us, end_us, scope.team)
        start_us = end_us
