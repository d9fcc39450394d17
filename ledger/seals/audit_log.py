"""The audit log: a chained list of changes to the ledger's master data, without secrets.

    while AuditLog(engine).follow(at_us=...):
        pass

Contracts, budget versions, price imports, policy sets, overrides, manual entries, configurations,
organisations, teams, users, keys and their changes, invoices, and the setup of engines are rows
that are never edited; a key is revoked once, and an invoice posted once. Seconds after its commit
each row is entered with the hash of all its columns (and an invoice's lines).
`ledger.verify.registers` then finds any edit. The log reads rows of writers of any version.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, String, cast, exists, insert, or_, select
from sqlalchemy.exc import IntegrityError

from ledger.database import reading
from ledger.orm.books import ConfigVersionRow, PriceImportRow
from ledger.orm.budgets import BudgetVersionRow
from ledger.orm.fleet import CatalogEntryRow, EngineCapacityRow, GpuContractRow
from ledger.orm.identity import KeyChangeRow, KeyRow, OrganisationRow, TeamRow, UserRow
from ledger.orm.invoices import InvoiceItemRow, InvoiceRow
from ledger.orm.policies import ManualEntryRow, OverrideRow, PolicySetRow
from ledger.orm.registers import RegisterEntryRow
from ledger.seals.seal import GENESIS, leaf, said_leaf

ROWS_AT_ONCE = 500
PARTS_AT_ONCE = 5_000
MADE, REVOKED, POSTED = "made", "revoked", "posted"
_WIDE = 2**63


@dataclass(frozen=True, slots=True)
class RowEnding:
    """A single later change of a row, such as a revocation: its time, event and author.

    `until` names a column that may be set until that change, and not after it.
    """

    column: str
    event: str
    actor: str | None = None
    until: str | None = None

    @property
    def columns(self) -> set[str]:
        return {name for name in (self.column, self.actor, self.until) if name is not None}


@dataclass(frozen=True, slots=True)
class RowParts:
    """Rows of another table that are part of a row and are never edited either."""

    table: Any
    of: str  # their column with the row's key
    order: str


@dataclass(frozen=True, slots=True)
class AuditedTable:
    """A table in the audit log: key, author, hidden columns, subject of versions, ending."""

    table: Any
    key: str
    actor: str | None = None
    hidden: tuple[str, ...] = ()
    subject: str | None = None
    end: RowEnding | None = None
    parts: RowParts | None = None

    @property
    def name(self) -> str:
        return str(self.table.__tablename__)

    def columns(self, event: str) -> list[str]:
        """Return the columns of an entry: all of a row except its ending, or the ending."""
        ended = set() if self.end is None else self.end.columns
        if event != MADE:
            return [self.key, *sorted(ended)]
        return sorted({*self.table.__table__.columns.keys()} - ended)

    @property
    def events(self) -> tuple[str, ...]:
        return (MADE,) if self.end is None else (MADE, self.end.event)

    def actor_of(self, event: str, row: Mapping[str, Any]) -> Any:
        column = self.actor if event == MADE or self.end is None else self.end.actor
        return None if column is None else row[column]


REGISTERS = (
    AuditedTable(GpuContractRow, "id", subject="pool"),
    AuditedTable(BudgetVersionRow, "seq", subject="budget_id"),
    AuditedTable(PriceImportRow, "seq", actor="actor", subject="book"),
    AuditedTable(PolicySetRow, "number", actor="actor"),
    AuditedTable(OverrideRow, "number", actor="actor", subject="subject"),
    AuditedTable(ManualEntryRow, "number", actor="actor", subject="subject"),
    AuditedTable(ConfigVersionRow, "hash", hidden=("yaml",)),
    AuditedTable(OrganisationRow, "id"),
    AuditedTable(TeamRow, "id"),
    AuditedTable(UserRow, "id"),
    AuditedTable(KeyRow, "id", hidden=("secret_hash",), end=RowEnding("revoked_us", REVOKED)),
    AuditedTable(KeyChangeRow, "seq", actor="actor", subject="key_id"),
    AuditedTable(
        InvoiceRow,
        "id",
        actor="imported_by",
        end=RowEnding("posted_us", POSTED, "posted_by", until="utc_offset_min"),
        parts=RowParts(InvoiceItemRow, "invoice_id", "id"),
    ),
    AuditedTable(EngineCapacityRow, "id", subject="engine"),
    AuditedTable(CatalogEntryRow, "id", subject="engine"),
)


class AuditLog:
    def __init__(self, engine: Engine, *, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._engine = engine
        self._at_once = rows_at_once

    def follow(self, *, at_us: int) -> int:
        """Enter new rows. Return their number.

        If two hosts follow at once, one of them gives up.
        """
        with reading(self._engine) as connection:  # an idle ledger is read without a write lock
            if not connection.execute(_any_fresh()).scalar_one():
                return 0
        try:
            with self._engine.begin() as connection:
                entries = list(self._entries(connection, at_us))
                if entries:
                    connection.execute(insert(RegisterEntryRow), entries)
        except IntegrityError:
            return 0
        return len(entries)

    def _entries(self, connection: Connection, at_us: int) -> Iterator[dict[str, object]]:
        number, chain = register_head(connection)
        latest: dict[tuple[str, object], int] = {}  # latest entry per subject in this pass
        for register in REGISTERS:
            for event in register.events:
                for row in self._fresh(connection, register, event):
                    number += 1
                    of = register.name, row.get(register.subject or "")
                    before = latest.get(of) or _before(connection, register, row)
                    if register.subject is not None:
                        latest[of] = number
                    entry = {
                        "number": number, "at_us": at_us, "register": register.name,
                        "row": str(row[register.key]), "event": event,
                        "actor": register.actor_of(event, row),
                        "before": before,
                        "said": visible_values(register, event, row),
                        "leaf": leaf_of(connection, register, event, row),
                    }  # fmt: skip
                    chain = chain_entry(chain, entry)
                    yield {**entry, "chain": chain}

    def _fresh(
        self, connection: Connection, register: AuditedTable, event: str
    ) -> Sequence[Mapping[str, Any]]:
        query = _fresh_rows(register, event, self._at_once)
        return [dict(row) for row in connection.execute(query).mappings()]


@functools.cache
def _fresh_rows(register: AuditedTable, event: str, limit: int) -> Any:
    """Return a statement of the first rows without an entry."""
    key = getattr(register.table, register.key)
    known = exists().where(
        RegisterEntryRow.register == register.name,
        RegisterEntryRow.event == event,
        RegisterEntryRow.row == cast(key, String),
    )
    query = rows_of(register).where(~known).order_by(key).limit(limit)
    if register.end is not None and event != MADE:
        query = query.where(getattr(register.table, register.end.column).is_not(None))
    return query


@functools.cache
def _any_fresh() -> Any:
    """Return one statement of whether any table has a row without an entry."""
    fresh = [_fresh_rows(register, event, 1) for register in REGISTERS for event in register.events]
    return select(or_(*(query.order_by(None).exists() for query in fresh)))


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry for display.

    `fields` are (name, before, after); the first version has no before.
    """

    number: int
    at_us: int
    register: str
    row: str
    event: str
    actor: str | None
    fields: tuple[tuple[str, object, object], ...]


def changes(connection: Connection, limit: int) -> list[AuditEntry]:
    """Return the changes, newest first: author, old and new values."""
    names = ("number", "at_us", "register", "row", "event", "actor", "said", "before")
    columns = [getattr(RegisterEntryRow, name) for name in names]
    newest = select(*columns).order_by(RegisterEntryRow.number.desc()).limit(limit)
    rows = connection.execute(newest).all()
    wanted = [row[-1] for row in rows if row[-1] is not None]
    query = select(RegisterEntryRow.number, RegisterEntryRow.said)
    found = connection.execute(query.where(RegisterEntryRow.number.in_(wanted))).all()
    earlier: dict[int, dict[str, object]] = {row[0]: row[1] for row in found}
    return [
        AuditEntry(
            number,
            at_us,
            register,
            row,
            event,
            actor,
            _changed_values(earlier.get(before or 0, {}), said),
        )
        for number, at_us, register, row, event, actor, said, before in rows
    ]


def _changed_values(
    old: Mapping[str, object], new: Mapping[str, object]
) -> tuple[tuple[str, object, object], ...]:
    every = sorted({*old, *new})
    return tuple((n, old.get(n), new.get(n)) for n in every if old.get(n) != new.get(n))


def register_head(connection: Connection) -> tuple[int, bytes]:
    """Return the last entry's number and chain value; 0 and `GENESIS` without entries."""
    query = select(RegisterEntryRow.number, RegisterEntryRow.chain)
    row = connection.execute(query.order_by(RegisterEntryRow.number.desc()).limit(1)).one_or_none()
    return (0, GENESIS) if row is None else (row[0], bytes(row[1]))


def rows_of(register: AuditedTable) -> Any:
    """Return a statement of every row of a table, with all columns."""
    return select(*register.table.__table__.columns)


def leaf_of(
    connection: Connection, register: AuditedTable, event: str, row: Mapping[str, Any]
) -> bytes:
    """Return the hash of all that an entry of this row covers, including secrets."""
    names = register.columns(event)
    rest = _leaves(connection, register, row) if event == MADE else ()
    values = [_order_members(row[name]) for name in names]
    if event != MADE and register.end is not None and register.end.until is not None:
        return said_leaf(register.name, *values)  # an empty `until` stays empty after the ending
    return leaf(register.name, names, values, *rest)


def earlier_leaf_of(
    connection: Connection, register: AuditedTable, event: str, row: Mapping[str, Any]
) -> bytes | None:
    """Return the hash of an entry from before `until` belonged to a row's ending.

    Such entries counted `until` as part of the row's creation. Returns None for tables without such
    a column.
    """
    if register.end is None or register.end.until is None:
        return None
    names = register.columns(event)
    rest: Iterator[bytes] = iter(())
    if event == MADE:
        names, rest = sorted([*names, register.end.until]), _leaves(connection, register, row)
    else:
        names.remove(register.end.until)
    return leaf(register.name, names, [_order_members(row[name]) for name in names], *rest)


def _leaves(
    connection: Connection, register: AuditedTable, row: Mapping[str, Any]
) -> Iterator[bytes]:
    """Yield the leaves of a row's parts."""
    if (parts := register.parts) is None:
        return
    table = parts.table
    query = (
        select(*table.__table__.columns)
        .where(getattr(table, parts.of) == row[register.key])
        .order_by(getattr(table, parts.order))
    )
    names = sorted(table.__table__.columns.keys())
    with connection.execute(query, execution_options={"yield_per": PARTS_AT_ONCE}) as rows:
        for part in rows.mappings():
            yield leaf(str(table.__tablename__), names, [part[name] for name in names])


def visible_values(register: AuditedTable, event: str, row: Mapping[str, Any]) -> dict[str, object]:
    """Return the values for display, without secrets and empty values."""
    shown = {
        name: row[name]
        for name in register.columns(event)
        if name not in register.hidden and row[name] is not None
    }
    found: dict[str, object] = msgspec.to_builtins(shown)
    return found


def chain_entry(before: bytes, entry: Mapping[str, Any]) -> bytes:
    """Return the chain value of an entry after that of the previous entry."""
    names = ("number", "at_us", "register", "row", "event", "actor", "before", "said", "leaf")
    values = [_order_members(entry[name]) for name in names]
    return sha256(before + msgspec.msgpack.encode(values)).digest()


def _before(connection: Connection, register: AuditedTable, row: Mapping[str, Any]) -> int | None:
    """Return the number of the previous version's entry, None for a first version."""
    if register.subject is None:
        return None
    table = register.table
    key, subject = getattr(table, register.key), getattr(table, register.subject)
    query = (
        select(RegisterEntryRow.number)
        .join(table, RegisterEntryRow.row == cast(key, String))
        .where(
            RegisterEntryRow.register == register.name,
            subject == row[register.subject],
            key < row[register.key],
        )
        .order_by(key.desc())
        .limit(1)
    )
    found: int | None = connection.execute(query).scalar_one_or_none()
    return found


def _order_members(value: Any) -> Any:
    """Return a value for hashing: sorted object members, and integers above 64 bits as text.

    Databases return JSON members in any order, and msgpack's integers have 64 bits.
    """
    if isinstance(value, int) and not -_WIDE <= value < _WIDE:
        return str(value)
    if isinstance(value, dict):
        return [[name, _order_members(value[name])] for name in sorted(value)]
    return [_order_members(item) for item in value] if isinstance(value, list) else value
