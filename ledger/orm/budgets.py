"""Limits on spend: budgets, their windows, what hosts were granted, and the holds of attempts.

For a hard budget the grants of a window never add up to more than its limit, and no host spends
and holds more than its grant; so nothing is overspent however hosts interleave. A grant includes
what was spent out of it. Soft budgets have no grants: only `spent_pusd` moves.
"""

from sqlalchemy import BigInteger, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import LedgerBase, Serial, WideInteger

BOOKED = "booked"  # state of a hold that was made after the fact, out of no host's grant
NO_HOST = ""  # holder of the grant that covers booked spending


class BudgetRow(LedgerBase):
    """`id` is `escrow.budget_key(scope, period)`, which is what `records.Hold.scope` carries."""

    __tablename__ = "budgets"

    id: Mapped[str] = mapped_column(primary_key=True)
    scope: Mapped[str]  # team:search, org:acme, provider:openai, global, ...
    period: Mapped[str]  # day | month
    limit_pusd: Mapped[int] = mapped_column(WideInteger)
    hard: Mapped[bool]
    timezone: Mapped[str] = mapped_column(default="UTC")
    created_us: Mapped[int] = mapped_column(BigInteger)
    retired_us: Mapped[int | None] = mapped_column(BigInteger)


class BudgetVersionRow(LedgerBase):
    """What was said of a budget, and when; the newest of its id is what the budget's row says."""

    __tablename__ = "budget_versions"
    __table_args__ = (Index(None, "budget_id", "seq"),)

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    budget_id: Mapped[str]
    scope: Mapped[str]
    period: Mapped[str]
    limit_pusd: Mapped[int] = mapped_column(WideInteger)
    hard: Mapped[bool]
    timezone: Mapped[str]
    retired_us: Mapped[int | None] = mapped_column(BigInteger)
    recorded_us: Mapped[int] = mapped_column(BigInteger)


class BudgetWindowRow(LedgerBase):
    """`granted_pusd` is the sum of the window's grants, kept under the same row lock.

    `limit_pusd` is the highest limit that a host's grant was raised under. `claimed_pusd` is what
    claims of the window's attempts count beside what was spent: `ClaimRow.counted_pusd`.
    """

    __tablename__ = "budget_windows"

    budget_id: Mapped[str] = mapped_column(primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True)  # start, epoch seconds
    spent_pusd: Mapped[int] = mapped_column(WideInteger, default=0)
    granted_pusd: Mapped[int] = mapped_column(WideInteger, default=0)
    limit_pusd: Mapped[int | None] = mapped_column(WideInteger)
    claimed_pusd: Mapped[int] = mapped_column(WideInteger, default=0)


class GrantRow(LedgerBase):
    """What one host may spend in a window, and what its attempts have spent of it."""

    __tablename__ = "grants"

    budget_id: Mapped[str] = mapped_column(primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    host: Mapped[str] = mapped_column(primary_key=True)
    granted_pusd: Mapped[int] = mapped_column(WideInteger, default=0)
    spent_pusd: Mapped[int] = mapped_column(WideInteger, default=0)


class HoldRow(LedgerBase):
    """`state` is a `records.HoldState` or `BOOKED`."""

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


class BudgetAlertRow(LedgerBase):
    """A threshold that a budget's window reached: noted once, told until somebody hears it."""

    __tablename__ = "budget_alerts"

    budget_id: Mapped[str] = mapped_column(primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    threshold_ppm: Mapped[int] = mapped_column(primary_key=True)  # of the limit
    spent_pusd: Mapped[int] = mapped_column(WideInteger)
    limit_pusd: Mapped[int] = mapped_column(WideInteger)
    reached_us: Mapped[int] = mapped_column(BigInteger)
    due_us: Mapped[int] = mapped_column(BigInteger)  # nobody tells it before
    tries: Mapped[int]
    told_us: Mapped[int | None] = mapped_column(BigInteger)
