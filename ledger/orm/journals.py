"""Findings in a host's journals: where rows may lack, until somebody acknowledges it."""

from sqlalchemy import BigInteger, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Serial, WideInteger


class JournalFindingRow(LedgerBase):
    """A place in a journal where something is damaged or missing. Rows are never changed.

    `after` is the last sequence number before it. `missing` counts the numbers that lack, null:
    not known. `at_most_pusd` bounds what rows that lack can have cost, null: not known.
    `budgets_pusd` bounds the part of it that counts on hard budgets.
    """

    __tablename__ = "journal_findings"
    __table_args__ = (UniqueConstraint("journal", "segment", "offset"),)

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    journal: Stored[str]
    worker: Stored[str]
    host: Stored[str]
    segment: Stored[int] = define_column(BigInteger)
    offset: Stored[int] = define_column(BigInteger)
    at_us: Stored[int] = define_column(BigInteger)
    after: Stored[int] = define_column(BigInteger)
    missing: Stored[int | None] = define_column(BigInteger)
    reason: Stored[str]
    at_most_pusd: Stored[int | None] = define_column(WideInteger)
    budgets_pusd: Stored[int] = define_column(WideInteger)
