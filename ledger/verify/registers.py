"""Verification that master data and invoices are as entered in the audit log."""

from collections.abc import Generator
from typing import Any

from sqlalchemy import Connection, select

from ledger.budgets.versions import budgets_are_as_said
from ledger.orm.registers import RegisterEntryRow
from ledger.seals.audit_log import (
    MADE,
    REGISTERS,
    AuditedTable,
    chain_entry,
    earlier_leaf_of,
    leaf_of,
    rows_of,
)
from ledger.seals.seal import GENESIS

Found = Generator[tuple[str, str], None, None]
Entered = dict[tuple[str, str, str], bytes]  # register, row, event
EDITED = "it is not what was entered"


def registers_hold(connection: Connection) -> Found:
    """Check that each entered row is unchanged, and that the entries are an unbroken chain.

    Budgets must equal their newest versions.
    """
    entered: Entered = {}
    yield from _chain(connection, entered)
    for register in REGISTERS:
        yield from _rows(connection, register, entered)
    known = {register.name for register in REGISTERS}
    for name, row, event in entered:
        if name not in known:
            continue  # of a newer version: its entries are chained, its rows are not ours to judge
        words = "it was entered, and is gone" if event == MADE else f"it was {event}, and is not"
        yield f"{name} {row}", words
    yield from budgets_are_as_said(connection)


def _chain(connection: Connection, entered: Entered) -> Found:
    chain, number = GENESIS, 0
    query = select(*RegisterEntryRow.__table__.columns).order_by(RegisterEntryRow.number)
    for row in connection.execute(query).mappings():
        entry: dict[str, Any] = {**row, "leaf": bytes(row["leaf"])}
        number += 1
        if entry["number"] != number or chain_entry(chain, entry) != bytes(entry["chain"]):
            yield (
                f"register entry {entry['number']}",
                "the chain is broken here: an entry was edited or is missing",
            )
        number, chain = entry["number"], bytes(entry["chain"])
        entered[entry["register"], entry["row"], entry["event"]] = entry["leaf"]


def _rows(connection: Connection, register: AuditedTable, entered: Entered) -> Found:
    """Check rows and remove them from `entered`; rows without entry wait for the follower."""
    for row in map(dict, connection.execute(rows_of(register)).mappings()):
        for event in register.events:
            if register.end is not None and event != MADE and row[register.end.column] is None:
                continue  # not ended: if it was entered as such, it is left over
            wanted = entered.pop((register.name, str(row[register.key]), event), None)
            if wanted is None or wanted == leaf_of(connection, register, event, row):
                continue
            if wanted != earlier_leaf_of(connection, register, event, row):
                yield f"{register.name} {row[register.key]}", EDITED
