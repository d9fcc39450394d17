"""Limits on spend: budgets, their windows, what hosts were granted, and the holds of attempts.

A window's `spent + granted` never exceeds its `limit` for a hard budget: `granted` is what all
hosts together may still spend, and settling moves the actual cost from `granted` to `spent`.
"""

from sqlalchemy import BigInteger, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm_types import Base, Total


class Budget(Base):
    """`id` is `escrow.budget_key(scope, period)`, which is what `records.Hold.scope` carries."""

    __tablename__ = "budgets"

    id: Mapped[str] = mapped_column(primary_key=True)
    scope: Mapped[str]  # team:search, org:acme, provider:openai, global, ...
    period: Mapped[str]  # day | month
    limit_pusd: Mapped[int] = mapped_column(Total)
    hard: Mapped[bool]
    timezone: Mapped[str] = mapped_column(default="UTC")
    created_us: Mapped[int] = mapped_column(BigInteger)
    retired_us: Mapped[int | None] = mapped_column(BigInteger)


class BudgetWindow(Base):
    __tablename__ = "budget_windows"

    budget_id: Mapped[str] = mapped_column(ForeignKey("budgets.id"), primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True)  # start, epoch seconds
    limit_pusd: Mapped[int] = mapped_column(Total)
    spent_pusd: Mapped[int] = mapped_column(Total, default=0)
    granted_pusd: Mapped[int] = mapped_column(Total, default=0)


class Grant(Base):
    """What one host may still spend in a window: lent to its workers or kept by its desk."""

    __tablename__ = "grants"

    budget_id: Mapped[str] = mapped_column(ForeignKey("budgets.id"), primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    host: Mapped[str] = mapped_column(primary_key=True)
    amount_pusd: Mapped[int] = mapped_column(Total)


class HoldRow(Base):
    """`state` is a `holds.HoldState`: held, then once posted, voided or suspense."""

    __tablename__ = "holds"
    __table_args__ = (
        Index(
            "ix_holds_held",
            "budget_id",
            "window",
            sqlite_where=text("state = 'held'"),
            postgresql_where=text("state = 'held'"),
        ),
        {"sqlite_with_rowid": False},
    )

    attempt_id: Mapped[str] = mapped_column(primary_key=True)
    budget_id: Mapped[str] = mapped_column(primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger)
    amount_pusd: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str]
    actual_pusd: Mapped[int | None] = mapped_column(BigInteger)
