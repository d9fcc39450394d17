"""Spending records of another gateway, from before. They are in no sum of the ledger."""

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import WideInteger


class SpendHistoryRow(LedgerBase):
    """Sums of a source's requests of one day with equal attributes; `cell` numbers them."""

    __tablename__ = "spend_history"
    __table_args__ = (Index(None, "day"),)

    source: Stored[str] = define_column(primary_key=True)
    day: Stored[str] = define_column(primary_key=True)  # ISO, UTC
    cell: Stored[int] = define_column(primary_key=True)
    org: Stored[str]
    team: Stored[str]
    key: Stored[str]  # the id of its key in this ledger, or empty
    user: Stored[str]
    model: Stored[str]
    provider: Stored[str]
    requests: Stored[int] = define_column(BigInteger)
    failed: Stored[int] = define_column(BigInteger)
    input_tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    spend_pusd: Stored[int] = define_column(WideInteger)
