"""Scheduled reports: the periods that were sent, their destinations, and open retries."""

from sqlalchemy import BigInteger

from ledger.orm.base import LedgerBase, Stored, define_column


class ReportTurnRow(LedgerBase):
    """A period's report to one destination. The process that made or renewed the row sends it.

    `told_us` is when it was delivered, null until then.
    """

    __tablename__ = "report_turns"

    name: Stored[str] = define_column(primary_key=True)
    place: Stored[str] = define_column(primary_key=True)  # folder | webhook | mail
    start_us: Stored[int] = define_column(BigInteger, primary_key=True)
    due_us: Stored[int] = define_column(BigInteger)  # not sent before
    tries: Stored[int]
    told_us: Stored[int | None] = define_column(BigInteger)
