"""Reads of stored attempts, onto which records are folded."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from ledger.database import in_groups
from ledger.journals.records import AttemptOpened, Hold
from ledger.orm import tables as orm
from ledger.orm.books import LOST
from ledger.orm.budgets import BOOKED
from ledger.writing.fold import AttemptStage, KnownAttempt
from ledger.writing.rows import opened_record_of


def known_attempts(connection: Connection, ids: Sequence[str]) -> dict[str, KnownAttempt]:
    """Return the attempts among `ids` that are stored, with the holds of their opening."""
    table, hold = orm.AttemptRow, orm.HoldRow
    columns = [
        column
        for column in table.__table__.columns
        if column.name in AttemptOpened.__struct_fields__ or column.name in ("settled_us", "flag")
    ]
    found: dict[str, KnownAttempt] = {}
    for some in in_groups(ids):
        rows = connection.execute(select(*columns).where(table.attempt_id.in_(some))).mappings()
        stored = {row["attempt_id"]: dict(row) for row in rows}
        if not stored:
            continue
        held: dict[str, list[Hold]] = {}
        booked: dict[str, list[Hold]] = {}
        query = select(
            hold.attempt_id, hold.budget_id, hold.window, hold.amount_pusd, hold.state
        ).where(hold.attempt_id.in_(list(stored)))
        for attempt_id, budget_id, window, amount, state in connection.execute(query):
            mine = booked if state == BOOKED else held
            mine.setdefault(attempt_id, []).append(Hold(budget_id, window, amount))
        for attempt_id, row in stored.items():
            found[attempt_id] = KnownAttempt(
                opened_record_of(row),
                _stage(row),
                tuple(held.get(attempt_id, ())),
                booked=tuple(booked.get(attempt_id, ())),
            )
    return found


def _stage(row: Mapping[str, Any]) -> AttemptStage:
    if row["settled_us"] is None:
        return AttemptStage.OPEN
    return AttemptStage.LOST if row["flag"] == LOST else AttemptStage.SETTLED
