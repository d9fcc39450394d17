"""Every write to the books, in transactions that are whole or not at all.

`apply` moves journal positions in the transaction that writes what they cover: exactly once,
whenever the process dies. A record that the database refuses is found by applying the batch one
record at a time, and quarantined alone. What fails because the database is away raises `Away`:
the caller keeps its place and tries again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, StatementError

from ledger import orm
from ledger.database import is_away
from ledger.fold import Folded, Item, fold, fold_lost
from ledger.hours import correct_hours
from ledger.journal_reader import Position
from ledger.records import AttemptOpened, AttemptSettled, Record
from ledger.rows import Row, Rows
from ledger.stored import known_attempts

IMPORT_BATCH = 4000
LOST_BATCH = 1000
# A record's own fault: values that do not fit, broken constraints, postings that do not balance.
_VALUES = (ValueError, OverflowError, TypeError)
_POISON = (StatementError, *_VALUES)


class Away(Exception):
    """The database could not be reached or would not take the statement at this time."""


@dataclass(frozen=True, slots=True)
class Move:
    """A journal's position before and after a batch."""

    journal: str
    worker: str
    since: Position
    after: Position


@dataclass(slots=True)
class Applied:
    """What one transaction did. `spent` is by (journal, budget, window)."""

    attempts: int = 0
    settled: int = 0
    quarantined: int = 0
    spent: dict[tuple[str, str, int], int] = field(default_factory=dict)


class Repository:
    """The writing side of the ledger for one host."""

    def __init__(self, engine: Engine, *, host: str) -> None:
        self._engine = engine
        self._host = host
        dialect = postgresql if engine.dialect.name == "postgresql" else sqlite
        self._upsert = dialect.insert

    def positions(self) -> dict[str, Position]:
        """How far each journal of this host is applied."""
        table = orm.JournalPosition
        query = select(table.journal, table.segment, table.offset).where(table.host == self._host)
        with _guarded(), self._engine.connect() as connection:
            return {name: Position(segment, offset) for name, segment, offset in
                    connection.execute(query)}  # fmt: skip

    def apply(self, items: Sequence[Item], moves: Sequence[Move], *, at_us: int) -> Applied:
        """The items and the positions after them, in one transaction."""
        try:
            with self._engine.begin() as connection:
                applied = self._apply_batch(connection, items, at_us)
                self._move(connection, moves, at_us)
                return applied
        except _POISON as error:
            _raise_unless_poison(error)
        with _guarded(), self._engine.begin() as connection:
            applied = Applied()
            for item in items:
                self._apply_alone(connection, item, applied, at_us)
            self._move(connection, moves, at_us)
            return applied

    def import_records(self, records: Iterable[Record], *, journal: str, at_us: int) -> Applied:
        """Records that were never in a journal: a history, in batches. Repeating adds nothing."""
        total = Applied()
        batch: list[Item] = []
        for number, record in enumerate(records):
            batch.append(Item(journal, 0, number, b"", record))
            if len(batch) == IMPORT_BATCH:
                _add(total, self.apply(batch, (), at_us=at_us))
                batch = []
        if batch:
            _add(total, self.apply(batch, (), at_us=at_us))
        return total

    def settle_lost(self, journal: str, *, at_us: int) -> Applied:
        """Open attempts of a journal that nobody will write to again go to suspense."""
        table = orm.Attempt
        total = Applied()
        while True:
            with _guarded(), self._engine.begin() as connection:
                query = (
                    select(table.attempt_id)
                    .where(table.journal == journal, table.settled_us.is_(None))
                    .limit(LOST_BATCH)
                )
                ids = list(connection.execute(query).scalars())
                known = known_attempts(connection, ids)
                folded = fold_lost(((journal, attempt) for attempt in known.values()), at_us)
                self._write(connection, folded.rows)
                _add(total, Applied(0, len(ids), 0, folded.spent))
            if len(ids) < LOST_BATCH:
                return total

    def forget_journal(self, journal: str) -> None:
        """Drop the position of a journal whose files are gone."""
        table = orm.JournalPosition
        with _guarded(), self._engine.begin() as connection:
            connection.execute(table.__table__.delete().where(table.journal == journal))  # type: ignore[attr-defined]  # a mapped class's table

    def _apply_batch(self, connection: Connection, items: Sequence[Item], at_us: int) -> Applied:
        ids = {
            item.record.attempt_id
            for item in items
            if isinstance(item.record, (AttemptOpened, AttemptSettled))
        }
        folded = fold(items, known_attempts(connection, sorted(ids)))
        self._write(connection, folded.rows)
        correct_hours(connection, folded.rows.own, at_us=at_us)
        self._quarantine(connection, folded.unmatched, at_us)
        return _summary(folded)

    def _apply_alone(
        self, connection: Connection, item: Item, applied: Applied, at_us: int
    ) -> None:
        try:
            with connection.begin_nested():
                _add(applied, self._apply_batch(connection, [item], at_us))
        except _POISON as error:
            _raise_unless_poison(error)
            self._quarantine(connection, [(item, f"{type(error).__name__}: {error}"[:500])], at_us)
            applied.quarantined += 1

    def _write(self, connection: Connection, rows: Rows) -> None:
        for table, values in (
            (orm.Attempt, rows.attempts),
            (orm.AttemptDecision, rows.decisions),
            (orm.Posting, rows.postings),
            (orm.ComparedCost, rows.compared),
            (orm.HoldRow, rows.holds),
        ):
            if values:
                connection.execute(insert(table), values)
        if rows.refusals:
            connection.execute(
                self._upsert(orm.Refusal).on_conflict_do_nothing(index_elements=["request_id"]),
                rows.refusals,
            )
        if rows.settles:
            _update_attempts(connection, rows.settles)
        if rows.hold_ends:
            _end_holds(connection, rows.hold_ends)
        self._add_spent(connection, rows.spent)

    def _add_spent(self, connection: Connection, spent: Mapping[tuple[str, int], int]) -> None:
        """Totals are read under a row lock and written back; the order is fixed: no deadlock."""
        window, grant = orm.BudgetWindow, orm.Grant
        for (budget_id, start), amount in sorted(spent.items()):
            here = (window.budget_id == budget_id) & (window.window == start)
            found = select(window.spent_pusd).where(here).with_for_update()
            before = connection.execute(found).scalar_one_or_none()
            if before is None:
                self._open_window(connection, budget_id, start)
                before = connection.execute(found).scalar_one()
            connection.execute(update(window).where(here).values(spent_pusd=before + amount))
            mine = (
                (grant.budget_id == budget_id)
                & (grant.window == start)
                & (grant.host == self._host)
            )
            out = connection.execute(
                select(grant.spent_pusd).where(mine).with_for_update()
            ).scalar_one_or_none()
            if out is not None:
                connection.execute(update(grant).where(mine).values(spent_pusd=out + amount))

    def _open_window(self, connection: Connection, budget_id: str, start: int) -> None:
        statement = self._upsert(orm.BudgetWindow).on_conflict_do_nothing()
        row = {"budget_id": budget_id, "window": start, "spent_pusd": 0, "granted_pusd": 0}
        connection.execute(statement, [row])

    def _quarantine(
        self, connection: Connection, found: Sequence[tuple[Item, str]], at_us: int
    ) -> None:
        rows = [
            {
                "journal": item.journal,
                "segment": item.segment,
                "offset": item.offset,
                "at_us": at_us,
                "reason": reason.replace("\0", "\\0"),
                "record": item.raw,
            }
            for item, reason in found
        ]
        if rows:
            connection.execute(self._upsert(orm.Quarantined).on_conflict_do_nothing(), rows)

    def _move(self, connection: Connection, moves: Sequence[Move], at_us: int) -> None:
        rows = [
            {
                "journal": move.journal,
                "worker": move.worker,
                "host": self._host,
                "segment": move.after.segment,
                "offset": move.after.offset,
                "applied_us": at_us,
            }
            for move in moves
        ]
        if rows:
            statement = self._upsert(orm.JournalPosition)
            changed = {name: statement.excluded[name] for name in ("segment", "offset",
                                                                   "applied_us")}  # fmt: skip
            connection.execute(
                statement.on_conflict_do_update(index_elements=["journal"], set_=changed), rows
            )


def _update_attempts(connection: Connection, rows: list[Row]) -> None:
    table = orm.Attempt.__table__
    names = [name for name in rows[0] if name != "of_attempt"]
    connection.execute(
        update(orm.Attempt.__table__)  # type: ignore[arg-type]  # a mapped class's table
        .where(table.c.attempt_id == bindparam("of_attempt"))
        .values({name: bindparam(name) for name in names}),
        rows,
    )


def _end_holds(connection: Connection, rows: list[Row]) -> None:
    table = orm.HoldRow.__table__
    connection.execute(
        update(orm.HoldRow.__table__)  # type: ignore[arg-type]  # a mapped class's table
        .where(
            table.c.attempt_id == bindparam("of_attempt"),
            table.c.budget_id == bindparam("of_budget"),
        )
        .values(state=bindparam("state"), actual_pusd=bindparam("actual_pusd")),
        rows,
    )


def _summary(folded: Folded) -> Applied:
    rows = folded.rows
    settled = len(rows.settles) + sum(row["settled_us"] is not None for row in rows.attempts)
    return Applied(len(rows.attempts), settled, len(folded.unmatched), folded.spent)


def _add(total: Applied, more: Applied) -> None:
    total.attempts += more.attempts
    total.settled += more.settled
    total.quarantined += more.quarantined
    for account, amount in more.spent.items():
        total.spent[account] = total.spent.get(account, 0) + amount


def _raise_if_away(error: BaseException) -> None:
    if isinstance(error, DBAPIError) and is_away(error):
        raise Away(str(error.orig)) from error


def _raise_unless_poison(error: BaseException) -> None:
    """A statement that is wrong for every record is our fault, and no record pays for it."""
    _raise_if_away(error)
    ours = None if isinstance(error, DBAPIError) else getattr(error, "orig", None)
    if ours is not None and not isinstance(ours, _VALUES):
        raise error


class _guarded:  # noqa: N801  (reads as the guard it is in a `with`)
    """Turns a database that is away into `Away`; every other fault passes."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            _raise_if_away(error)
