"""Registry of the formats of `breakeven ledger export`, read by the command and its help.

No attribute has a default, so that a new format decides all of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import BinaryIO

from sqlalchemy import Connection

from ledger.exports import attempts, focus_columns
from ledger.exports.attempts import attempt_rows
from ledger.exports.delimited import write_csv
from ledger.exports.focus import focus_rows
from ledger.exports.parquet import write_parquet
from ledger.exports.table import ExportColumn, Reached, Row, moment
from ledger.fleet.hourshares import closed_until_us
from ledger.spans import Scope

FileWriter = Callable[[BinaryIO, Sequence[ExportColumn], Iterator[Row]], None]


class ExportFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    FOCUS = "focus"
    FOCUS_1_2 = "focus-1.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatTraits:
    """Content of one format, and how it is written.

    `holds`: its content in the words of the help. `money`: the column whose sum the command prints.
    `rows`: of a connection, a scope and a charge period in microseconds, which most formats ignore.
    `is_text`: whether a terminal can show it. `needs_full_hours`: whether its period begins and
    ends with an hour. `unpriced`: where attempts without a price are. `notes`: further facts that a
    reader cannot see in the file.
    """

    holds: str
    columns: tuple[ExportColumn, ...]
    money: str
    rows: Callable[[Connection, Scope, int, Reached], Iterator[Row]]
    write: FileWriter
    is_text: bool
    needs_full_hours: bool
    unpriced: str
    notes: Callable[[Connection, Scope], Iterator[str]]

    @property
    def money_place(self) -> int:
        return [column.name for column in self.columns].index(self.money)


def _attempts(connection: Connection, scope: Scope, _us: int, reached: Reached) -> Iterator[Row]:
    return attempt_rows(connection, scope, reached)


def _focus(connection: Connection, scope: Scope, us: int, reached: Reached) -> Iterator[Row]:
    return focus_rows(connection, scope, reached, period_us=us)


def _focus_1_2(connection: Connection, scope: Scope, us: int, reached: Reached) -> Iterator[Row]:
    layout = focus_columns.FOCUS_1_2
    return focus_rows(connection, scope, reached, period_us=us, layout=layout)


def _no_notes(_connection: Connection, _scope: Scope) -> Iterator[str]:
    return iter(())


def _open_hours(connection: Connection, scope: Scope) -> Iterator[str]:
    for pool, until_us in closed_until_us(connection).items():
        if until_us is None:
            yield f"pool {pool}: no hour is closed, so none is in this file"
        elif until_us < scope.end_us:
            yield f"pool {pool}: hours from {moment(until_us, digits=False)} on are not closed"


_CSV = FormatTraits(
    holds="every attempt",
    columns=attempts.COLUMNS,
    money="cost_usd",
    rows=_attempts,
    write=write_csv,
    is_text=True,
    needs_full_hours=False,
    unpriced="have an empty cost",
    notes=_no_notes,
)
_FOCUS = FormatTraits(
    holds="FOCUS 1.4",
    columns=focus_columns.FOCUS_1_4.columns,
    money="BilledCost",
    rows=_focus,
    write=write_csv,
    is_text=True,
    needs_full_hours=True,
    unpriced="are not in this file",
    notes=_open_hours,
)
EXPORT_FORMATS: Mapping[ExportFormat, FormatTraits] = {
    ExportFormat.CSV: _CSV,
    ExportFormat.PARQUET: replace(_CSV, write=write_parquet, is_text=False),
    ExportFormat.FOCUS: _FOCUS,
    ExportFormat.FOCUS_1_2: replace(
        _FOCUS, holds="FOCUS 1.2", columns=focus_columns.FOCUS_1_2.columns, rows=_focus_1_2
    ),
}


def describe_formats() -> str:
    """Return the help of `--format`; formats with the same content are listed together."""
    names: dict[str, list[str]] = {}
    for format_, traits in EXPORT_FORMATS.items():
        names.setdefault(traits.holds, []).append(format_.value)
    parts = [f"{', '.join(formats)}: {holds}" for holds, formats in names.items()]
    return "; ".join(parts) + "."
