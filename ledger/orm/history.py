"""Spending from before, of another gateway's records: beside the books and in no sum of theirs."""

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import WideInteger


class SpendHistoryRow(LedgerBase):
    """One day's requests of a source that agree in whom and what; `cell` numbers them."""

    __tablename__ = "spend_history"
    __table_args__ = (Index(None, "day"),)

    source: Stored[str] = define_column(primary_key=True)
    day: Stored[str] = define_column(primary_key=True)  # ISO, UTC
    cell: Stored[int] = define_column(primary_key=True)
    org: Stored[str]
    team: Stored[str]
    key: Stored[str]  # the id that its key has here, or empty
    user: Stored[str]
    model: Stored[str]
    provider: Stored[str]
    requests: Stored[int] = define_column(BigInteger)
    failed: Stored[int] = define_column(BigInteger)
    input_tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    spend_pusd: Stored[int] = define_column(WideInteger)
