"""Verification of attempts that two engines served: their parts add up to the whole."""

from sqlalchemy import Connection, func, select

from ledger.orm.books import AttemptLegRow, AttemptRow
from ledger.orm.types import exact_sum
from ledger.verify.hours import Found


def legs_add_up(connection: Connection) -> Found:
    """Check that an attempt's parts add up to its engine time, each with its own time and KV."""
    busy_us, least = exact_sum(AttemptLegRow.busy_us), func.min(AttemptLegRow.busy_us)
    held = func.min(AttemptLegRow.kv_tokens), func.min(AttemptLegRow.held_us)
    query = (
        select(AttemptLegRow.attempt_id, AttemptRow.engine_us, busy_us, least, *held)
        .outerjoin(AttemptRow, AttemptRow.attempt_id == AttemptLegRow.attempt_id)
        .group_by(AttemptLegRow.attempt_id, AttemptRow.engine_us)
    )
    for attempt_id, whole_us, parts_us, *smallest in connection.execute(query):
        if whole_us is None:
            yield attempt_id, "has parts, and no settled attempt is behind them"
        elif whole_us != parts_us:
            yield attempt_id, f"took {whole_us} us of engines, its parts {parts_us} us"
        elif min(smallest) < 0:
            yield attempt_id, "a part of it took less than nothing"
