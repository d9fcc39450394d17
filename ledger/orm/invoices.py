"""Invoices as they were imported, and what was decided about them."""

from datetime import date

from sqlalchemy import BigInteger, Index
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import LedgerBase, Serial, WideInteger


class InvoiceRow(LedgerBase):
    """One imported file. `party` is whom it is from: `provider:NAME`, or `gpu:POOL`."""

    __tablename__ = "invoices"

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    party: Mapped[str]
    format: Mapped[str]
    name: Mapped[str]  # of the file
    digest: Mapped[str] = mapped_column(unique=True)  # of party and file: imported once
    places: Mapped[int]  # decimal places of its amounts
    first_day: Mapped[date]
    last_day: Mapped[date]
    total_pusd: Mapped[int] = mapped_column(WideInteger)
    imported_us: Mapped[int] = mapped_column(BigInteger)
    imported_by: Mapped[str]
    posted_us: Mapped[int | None] = mapped_column(BigInteger)
    posted_by: Mapped[str | None]


class InvoiceItemRow(LedgerBase):
    """One line of an invoice: a day of an item."""

    __tablename__ = "invoice_items"
    __table_args__ = (Index(None, "invoice_id", "day"),)

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    invoice_id: Mapped[int] = mapped_column(BigInteger)
    day: Mapped[date]
    item: Mapped[str]
    project: Mapped[str | None]
    amount_pusd: Mapped[int] = mapped_column(BigInteger)
    quantity: Mapped[str | None]  # decimal text
    unit: Mapped[str | None]
