"""Budgets: their terms, windows, grants to hosts, and holds of attempts.

For a hard budget, the grants of a window never exceed its limit, and no host spends and holds more
than its grant. So nothing is overspent in any interleaving of hosts. A grant includes what was
spent from it. Soft budgets have no grants: only `spent_pusd` changes.
"""

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index
from ledger.orm.types import Serial, WideInteger

BOOKED = "booked"  # state of a hold that was added later, without a host's grant
NO_HOST = ""  # the host of the grant that covers booked spending


class BudgetRow(LedgerBase):
    """A budget. `id` is `escrow.budget_key(scope, period)`, as in `records.Hold.scope`."""

    __tablename__ = "budgets"

    id: Stored[str] = define_column(primary_key=True)
    scope: Stored[str]  # team:search, org:acme, provider:openai, global, ...
    period: Stored[str]  # day | month
    limit_pusd: Stored[int] = define_column(WideInteger)
    hard: Stored[bool]
    timezone: Stored[str] = define_column(default="UTC")
    created_us: Stored[int] = define_column(BigInteger)
    retired_us: Stored[int | None] = define_column(BigInteger)


class BudgetVersionRow(LedgerBase):
    """A version of a budget. The newest version of an id equals the budget's row."""

    __tablename__ = "budget_versions"
    __table_args__ = (Index(None, "budget_id", "seq"),)

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    budget_id: Stored[str]
    scope: Stored[str]
    period: Stored[str]
    limit_pusd: Stored[int] = define_column(WideInteger)
    hard: Stored[bool]
    timezone: Stored[str]
    retired_us: Stored[int | None] = define_column(BigInteger)
    recorded_us: Stored[int] = define_column(BigInteger)


class BudgetWindowRow(LedgerBase):
    """A window of one account. `granted_pusd` is the sum of its grants, under one row lock.

    `limit_pusd` is the highest limit under which a host's grant was raised. `claimed_pusd` is what
    claims of the window's attempts count in addition to spending (`ClaimRow.counted_pusd`).
    `team_id` is the team whose request first named this tag value; null for other accounts.
    """

    __tablename__ = "budget_windows"
    __table_args__ = (
        # Queries select current windows by start, while ended ones keep growing in number.
        Index(None, "window", "team_id", "budget_id"),
    )

    budget_id: Stored[str] = define_column(primary_key=True)
    window: Stored[int] = define_column(BigInteger, primary_key=True)  # start, epoch seconds
    spent_pusd: Stored[int] = define_column(WideInteger, default=0)
    granted_pusd: Stored[int] = define_column(WideInteger, default=0)
    limit_pusd: Stored[int | None] = define_column(WideInteger)
    claimed_pusd: Stored[int] = define_column(WideInteger, default=0)
    team_id: Stored[str | None]


class GrantRow(LedgerBase):
    """The money that one host may spend in a window, and what its attempts spent of it."""

    __tablename__ = "grants"
    __table_args__ = (Index(None, "host", "window"),)

    budget_id: Stored[str] = define_column(primary_key=True)
    window: Stored[int] = define_column(BigInteger, primary_key=True)
    host: Stored[str] = define_column(primary_key=True)
    granted_pusd: Stored[int] = define_column(WideInteger, default=0)
    spent_pusd: Stored[int] = define_column(WideInteger, default=0)


class HoldRow(LedgerBase):
    """A hold of an attempt on one window. `state` is a `records.HoldState` or `BOOKED`."""

    __tablename__ = "holds"
    __table_args__ = (
        partial_index("ix_holds_held", "budget_id", "window", where="state = 'held'"),
        {"sqlite_with_rowid": False},
    )

    attempt_id: Stored[str] = define_column(primary_key=True)
    budget_id: Stored[str] = define_column(primary_key=True)
    window: Stored[int] = define_column(BigInteger)
    amount_pusd: Stored[int] = define_column(BigInteger)
    state: Stored[str]
    actual_pusd: Stored[int | None] = define_column(BigInteger)


class BudgetAlertRow(LedgerBase):
    """A threshold that a budget's window reached: recorded once, sent until delivered."""

    __tablename__ = "budget_alerts"

    budget_id: Stored[str] = define_column(primary_key=True)
    window: Stored[int] = define_column(BigInteger, primary_key=True)
    threshold_ppm: Stored[int] = define_column(primary_key=True)  # of the limit
    spent_pusd: Stored[int] = define_column(WideInteger)
    limit_pusd: Stored[int] = define_column(WideInteger)
    reached_us: Stored[int] = define_column(BigInteger)
    due_us: Stored[int] = define_column(BigInteger)  # not sent before
    tries: Stored[int]
    told_us: Stored[int | None] = define_column(BigInteger)
