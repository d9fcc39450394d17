"""Findings in a host's journals: places where rows may be missing, until acknowledged."""

from sqlalchemy import BigInteger, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Serial, WideInteger


class JournalFindingRow(LedgerBase):
    """A place in a journal where data is damaged or missing. Rows are never changed.

    `after` is the last sequence number before it. `missing` is the number of missing records, null
    if unknown. `at_most_pusd` is the maximum cost of missing rows, null if unknown. `budgets_pusd`
    is the maximum part of it that counts on hard budgets.
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
