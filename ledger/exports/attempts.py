"""Attempts as a table: one row per upstream try of a span, ordered by opening time.

`cost_usd` is the charge at settle: the provider's price for APIs, the provisional share for own
engines. It is empty if no price is known or the attempt is open. Idle time and the final shares of
hours are not attempts; `focus` has them.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from ledger.exports.table import ColumnKind, ExportColumn, Reached, Row, slices
from ledger.journals.token_kinds import TOKEN_COLUMNS
from ledger.orm.tables import AttemptRow
from ledger.spans import HOUR_US, Scope

ROWS_AT_ONCE = 2_000

_KINDS = {
    "attempt_no": ColumnKind.INTEGER,
    "opened_us": ColumnKind.INSTANT,
    "settled_us": ColumnKind.INSTANT,
    "stream": ColumnKind.FLAG,
    "simulated": ColumnKind.FLAG,
    "slo_met": ColumnKind.FLAG,
    "price_version": ColumnKind.INTEGER,
    "http_status": ColumnKind.INTEGER,
    **dict.fromkeys(TOKEN_COLUMNS.values(), ColumnKind.INTEGER),
    "cost_pusd": ColumnKind.USD,
    "compared_pusd": ColumnKind.USD,
    "ttft_us": ColumnKind.INTEGER,
    "duration_us": ColumnKind.INTEGER,
    "engine_us": ColumnKind.INTEGER,
}
NAMES = (
    "attempt_id", "request_id", "attempt_no", "opened_us", "settled_us", "org_id", "team_id",
    "user_id", "key_id", "kind", "stream", "model", "backend", "pool", "engine", "provider",
    "target", "upstream_model", "simulated", "policy", "reason", "spill_reason", "status",
    "http_status", "finish_reason", "flag", "basis", "tier", "price_version",
    *TOKEN_COLUMNS.values(), "cost_pusd", "compared_with", "compared_pusd", "slo_met", "ttft_us",
    "duration_us", "engine_us",
)  # fmt: skip


def _column_name(name: str) -> str:
    """Return the column name with the unit as written: USD, and times as text."""
    kind = _KINDS.get(name)
    if kind is ColumnKind.USD:
        return name.replace("_pusd", "_usd")
    return name.replace("_us", "_at") if kind is ColumnKind.INSTANT else name


COLUMNS = tuple(
    ExportColumn(_column_name(name), _KINDS.get(name, ColumnKind.TEXT)) for name in NAMES
)


def attempt_rows(
    connection: Connection, scope: Scope, reached: Reached, *, slice_us: int = HOUR_US
) -> Iterator[Row]:
    """Yield every attempt opened in the scope. Calls `reached` with the end of each slice."""
    columns: list[Any] = [getattr(AttemptRow, name) for name in NAMES]
    for part in slices(scope, slice_us):
        statement = part.narrow(select(*columns)).order_by(AttemptRow.opened_us, AttemptRow.seq)
        options = {"yield_per": ROWS_AT_ONCE}
        for row in connection.execute(statement, execution_options=options):
            yield tuple(row)
        reached(part.end_us)
