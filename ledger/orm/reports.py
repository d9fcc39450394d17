"""Reports that are sent by themselves: which period's went where, and what is tried again."""

from sqlalchemy import BigInteger

from ledger.orm.base import LedgerBase, Stored, define_column


class ReportTurnRow(LedgerBase):
    """A period's report to one place: whoever made the row or renews it in time sends it.

    `told_us`: when it was taken; `None` while nobody took it.
    """

    __tablename__ = "report_turns"

    name: Stored[str] = define_column(primary_key=True)
    place: Stored[str] = define_column(primary_key=True)  # folder | webhook | mail
    start_us: Stored[int] = define_column(BigInteger, primary_key=True)
    due_us: Stored[int] = define_column(BigInteger)  # nobody sends it before
    tries: Stored[int]
    told_us: Stored[int | None] = define_column(BigInteger)
