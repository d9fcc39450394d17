"""Attempts as a table: one row per upstream try of a span, in the order of their opening.

`cost_usd` is what the attempt was charged at settle: the provider's price for APIs, the
provisional share for own engines. It is empty where no price is known or the attempt is open.
Idle time and the hours' final shares are no attempts: `exports_focus` has them.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from ledger.exports.table import Column, Kind, Reached, Row, slices
from ledger.orm.tables import Attempt
from ledger.spans import HOUR_US, Scope

ROWS_AT_ONCE = 2_000

_KINDS = {
    "attempt_no": Kind.INTEGER,
    "opened_us": Kind.INSTANT,
    "settled_us": Kind.INSTANT,
    "stream": Kind.FLAG,
    "simulated": Kind.FLAG,
    "slo_met": Kind.FLAG,
    "price_version": Kind.INTEGER,
    "http_status": Kind.INTEGER,
    "input_tokens": Kind.INTEGER,
    "cached_tokens": Kind.INTEGER,
    "cache_write_tokens": Kind.INTEGER,
    "cache_write_1h_tokens": Kind.INTEGER,
    "output_tokens": Kind.INTEGER,
    "reasoning_tokens": Kind.INTEGER,
    "audio_input_tokens": Kind.INTEGER,
    "audio_output_tokens": Kind.INTEGER,
    "audio_ms": Kind.INTEGER,
    "searches": Kind.INTEGER,
    "cost_pusd": Kind.USD,
    "compared_pusd": Kind.USD,
    "ttft_us": Kind.INTEGER,
    "duration_us": Kind.INTEGER,
    "engine_us": Kind.INTEGER,
}
_NAMES = (
    "attempt_id", "request_id", "attempt_no", "opened_us", "settled_us", "org_id", "team_id",
    "user_id", "key_id", "kind", "stream", "model", "backend", "pool", "engine", "provider",
    "target", "upstream_model", "simulated", "policy", "reason", "spill_reason", "status",
    "http_status", "finish_reason", "flag", "basis", "tier", "price_version", "input_tokens",
    "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens",
    "reasoning_tokens", "audio_input_tokens", "audio_output_tokens", "audio_ms", "searches",
    "cost_pusd",
    "compared_with", "compared_pusd", "slo_met", "ttft_us", "duration_us", "engine_us",
)  # fmt: skip


def _written(name: str) -> str:
    """Names say the unit that is written: dollars, and times that are no numbers."""
    kind = _KINDS.get(name)
    if kind is Kind.USD:
        return name.replace("_pusd", "_usd")
    return name.replace("_us", "_at") if kind is Kind.INSTANT else name


COLUMNS = tuple(Column(_written(name), _KINDS.get(name, Kind.TEXT)) for name in _NAMES)


def attempt_rows(
    connection: Connection, scope: Scope, reached: Reached, *, slice_us: int = HOUR_US
) -> Iterator[Row]:
    """Every attempt that was opened in the scope; `reached` is told the end of each slice."""
    columns: list[Any] = [getattr(Attempt, name) for name in _NAMES]
    for part in slices(scope, slice_us):
        statement = part.narrow(select(*columns)).order_by(Attempt.opened_us, Attempt.seq)
        options = {"yield_per": ROWS_AT_ONCE}
        for row in connection.execute(statement, execution_options=options):
            yield tuple(row)
        reached(part.end_us)
