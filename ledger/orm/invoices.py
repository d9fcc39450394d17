"""Imported invoices, and decisions about them."""

from datetime import date

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Serial, WideInteger


class InvoiceRow(LedgerBase):
    """One imported file. `party` is its issuer: `provider:NAME`, or `gpu:POOL`."""

    __tablename__ = "invoices"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    party: Stored[str]
    format: Stored[str]
    name: Stored[str]  # of the file
    digest: Stored[str] = define_column(unique=True)  # of party and file: imported once
    places: Stored[int]  # decimal places of its amounts
    first_day: Stored[date]
    last_day: Stored[date]
    total_pusd: Stored[int] = define_column(WideInteger)
    imported_us: Stored[int] = define_column(BigInteger)
    imported_by: Stored[str]
    posted_us: Stored[int | None] = define_column(BigInteger)
    posted_by: Stored[str | None]
    utc_offset_min: Stored[int | None]  # minutes by which its days are ahead of UTC


class InvoiceItemRow(LedgerBase):
    """One line of an invoice: one item on one day."""

    __tablename__ = "invoice_items"
    __table_args__ = (Index(None, "invoice_id", "day"),)

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    invoice_id: Stored[int] = define_column(BigInteger)
    day: Stored[date]
    item: Stored[str]
    project: Stored[str | None]
    amount_pusd: Stored[int] = define_column(BigInteger)
    quantity: Stored[str | None]  # decimal text
    unit: Stored[str | None]
    # The number of its charge in the file; null if the format has no charges for several days, or
    # an earlier release imported it.
    charge: Stored[int | None] = define_column(BigInteger)
