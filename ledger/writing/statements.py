"""Statements of the ledger writer, compiled once and passed directly to the driver.

SQLAlchemy looks every statement up in its cache and converts every row by its columns, which costs
more than SQLite's own work. Text and conversions still come from the dialect, so each statement is
written once for both databases. Use this only for the few statements of every batch.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import BindParameter, Connection, Dialect, bindparam, insert, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement

from ledger.orm import tables as orm
from ledger.orm.base import LedgerBase
from ledger.posting_rows import DatabaseRow, Values
from ledger.upserts import insert_of
from ledger.writing.rows import SETTLED

COPIED_FROM = 20  # rows: for fewer the further round trip costs more than it saves


class PreparedStatement:
    """A compiled statement; rows give its parameters by name."""

    def __init__(
        self, dialect: Dialect, statement: Executable, columns: Sequence[str] | None = None
    ) -> None:
        assert isinstance(statement, ClauseElement)
        compiled = statement.compile(dialect=dialect, column_keys=columns)
        assert isinstance(compiled, SQLCompiler)
        self._text = compiled.string
        self._in_order = itemgetter(*compiled.positiontup) if compiled.positiontup else None
        processors = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect)
            for name, bind in compiled.binds.items()
        }
        self._converted = [(name, process) for name, process in processors.items() if process]

    def run(self, connection: Connection, rows: list[DatabaseRow]) -> None:
        """Run the statement once per row. The rows are changed: values are converted in place."""
        if rows:
            connection.exec_driver_sql(self._text, self._values(rows))

    def find(self, connection: Connection, row: DatabaseRow) -> tuple[Any, ...] | None:
        """Return the only row as the driver gives it, or `None`."""
        (values,) = self._values([row])
        return connection.exec_driver_sql(self._text, values).one_or_none()

    def _values(self, rows: list[DatabaseRow]) -> list[Any]:
        for name, process in self._converted:
            for row in rows:
                row[name] = process(row[name])
        return rows if self._in_order is None else list(map(self._in_order, rows))


class InsertStatement:
    """An insert into one table; a row is a tuple of values in the order of `columns`."""

    def __init__(self, dialect: Dialect, table: type[LedgerBase], columns: Sequence[str]) -> None:
        compiled = insert(table).inline().compile(dialect=dialect, column_keys=columns)
        assert isinstance(compiled, SQLCompiler)
        assert compiled.positiontup in (None, list(columns)), "columns stand in the table's order"
        self._text = compiled.string
        self._named = tuple(columns) if compiled.positiontup is None else None
        processors = [
            compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect)
            for name in columns
        ]
        self._converted = [
            (place, processor) for place, processor in enumerate(processors) if processor
        ]

    def run(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Insert the rows."""
        if rows:
            self._write(connection, self._values(rows) if self._converted else rows)

    def _write(self, connection: Connection, rows: Sequence[Values]) -> None:
        if self._named is None:
            connection.exec_driver_sql(self._text, list(rows))
        else:
            named = [dict(zip(self._named, row, strict=True)) for row in rows]
            connection.exec_driver_sql(self._text, named)

    def _values(self, rows: Sequence[Values]) -> list[Values]:
        found = []
        for row in rows:
            values = list(row)
            for place, process in self._converted:
                values[place] = process(values[place])
            found.append(tuple(values))
        return found


class CopyStatement(InsertStatement):
    """An insert by COPY, at a third of the cost of INSERT; few rows use INSERT."""

    def __init__(self, dialect: Dialect, table: type[LedgerBase], columns: Sequence[str]) -> None:
        super().__init__(dialect, table, columns)
        quoted = ", ".join(f'"{name}"' for name in columns)
        self._copy = f"COPY {table.__tablename__} ({quoted}) FROM STDIN"
        self._dialect = dialect

    def _write(self, connection: Connection, rows: Sequence[Values]) -> None:
        if len(rows) < COPIED_FROM:
            super()._write(connection, rows)
            return
        driver = self._dialect.dbapi
        assert driver is not None
        cursor: Any = connection.connection.cursor()
        try:
            with cursor.copy(self._copy) as into:
                for row in rows:
                    into.write_row(row)
        except driver.Error as error:  # the errors of its own statements
            raise DBAPIError.instance(
                self._copy, None, error, driver.Error, dialect=self._dialect
            ) from error
        finally:
            cursor.close()


MOVED = ("segment", "offset", "applied_us", "sequence")  # of a position


class WriterStatements:
    """All prepared statements of the writer for one database."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._upsert = insert_of(dialect)
        self.attempts = self._insert(orm.AttemptRow)
        self.decisions = self._insert(orm.AttemptDecisionRow)
        self.postings = self._insert(orm.PostingRow)
        self.compared = self._insert(orm.ComparedCostRow)
        self.legs = self._insert(orm.AttemptLegRow)
        self.claims = self._insert(orm.ClaimRow)
        self.holds = self._insert(orm.HoldRow)
        self.refusals = self._insert_missing(orm.RefusalRow, "request_id")
        self.cache_hits = self._insert_missing(orm.CacheHitRow, "request_id")
        self.windows = self._insert_missing(orm.BudgetWindowRow)
        self.quarantined = self._insert_missing(orm.QuarantinedRecordRow)
        self.findings = self._insert_missing(orm.JournalFindingRow)
        self.settles = PreparedStatement(dialect, _settle())
        self.hold_ends = PreparedStatement(dialect, _end_hold())
        self.spent = PreparedStatement(dialect, _select_spent())
        self.granted = PreparedStatement(dialect, _select_granted())
        self.spend = PreparedStatement(dialect, _spend(orm.BudgetWindowRow))
        self.spend_grant = PreparedStatement(dialect, _spend(orm.GrantRow))
        self.positions = self._positions()

    def _insert(self, table: type[LedgerBase]) -> InsertStatement:
        made = CopyStatement if self._dialect.name == "postgresql" else InsertStatement
        return made(self._dialect, table, _names(table))

    def _insert_missing(self, table: type[LedgerBase], *unique: str) -> PreparedStatement:
        statement = self._upsert(table).on_conflict_do_nothing(index_elements=unique or None)
        return PreparedStatement(self._dialect, statement.inline(), _names(table))

    def _positions(self) -> PreparedStatement:
        statement = self._upsert(orm.JournalPositionRow)
        changed = {name: statement.excluded[name] for name in MOVED}
        statement = statement.on_conflict_do_update(index_elements=["journal"], set_=changed)
        return PreparedStatement(self._dialect, statement.inline(), _names(orm.JournalPositionRow))


def _names(table: type[LedgerBase]) -> list[str]:
    return [name for name in table.__table__.columns.keys() if name != "seq"]  # noqa: SIM118  (not a dict)


def _settle() -> Executable:
    attempt = orm.AttemptRow
    return (
        update(attempt)
        .where(attempt.attempt_id == bindparam("of_attempt"))
        .values({name: bindparam(name) for name in SETTLED})
    )


def _end_hold() -> Executable:
    hold = orm.HoldRow
    return (
        update(hold)
        .where(
            hold.attempt_id == bindparam("of_attempt"),
            hold.budget_id == bindparam("of_budget"),
        )
        .values(state=bindparam("state"), actual_pusd=bindparam("actual_pusd"))
    )


def _select_spent() -> Executable:
    """Return the statement that locks a window's row, before any change to its grants."""
    window = orm.BudgetWindowRow
    here = (window.budget_id == bindparam("of_budget"), window.window == bindparam("of_window"))
    return select(window.spent_pusd, window.claimed_pusd).where(*here).with_for_update()


def _select_granted() -> Executable:
    """Return the statement that reads a grant under the window's lock.

    Joined to the lock's statement, it would read the grant as it was before the wait.
    """
    grant = orm.GrantRow
    here = (
        grant.budget_id == bindparam("of_budget"),
        grant.window == bindparam("of_window"),
        grant.host == bindparam("of_host"),
    )
    return select(grant.spent_pusd).where(*here)


def _spend(table: type[orm.BudgetWindowRow] | type[orm.GrantRow]) -> Executable:
    here = [
        table.budget_id == bindparam("of_budget"),
        table.window == bindparam("of_window"),
    ]
    changes: dict[str, BindParameter[Any]] = {"spent_pusd": bindparam("spent_pusd")}
    if table is orm.GrantRow:
        here.append(orm.GrantRow.host == bindparam("of_host"))
    else:
        changes["claimed_pusd"] = bindparam("claimed_pusd")
    return update(table).where(*here).values(**changes)
