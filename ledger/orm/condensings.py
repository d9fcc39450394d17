"""What stands for rows that went: holds by window, postings by account and day, refusals by hour.

Written by `retire` and `condense`; read by `condensed` and by the checks of `verify`.
"""

from sqlalchemy import BigInteger, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import LedgerBase, WideInteger


class RetiredHoldsRow(LedgerBase):
    """What holds of retired attempts came to, by budget and window: they go with their attempts."""

    __tablename__ = "retired_holds"

    budget_id: Mapped[str] = mapped_column(primary_key=True)
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    holds: Mapped[int] = mapped_column(BigInteger)
    actual_pusd: Mapped[int] = mapped_column(WideInteger)


class PostingCompactionRow(LedgerBase):
    """What stands for postings and refusals that went from under links: see `condensed`."""

    __tablename__ = "condensings"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    first_link: Mapped[int] = mapped_column(BigInteger)
    last_link: Mapped[int] = mapped_column(BigInteger)
    condensed_us: Mapped[int] = mapped_column(BigInteger)
    entries: Mapped[int] = mapped_column(BigInteger)  # of attempts, with a cost
    postings: Mapped[int] = mapped_column(BigInteger)
    refusals: Mapped[int] = mapped_column(BigInteger)
    gone: Mapped[bytes] = mapped_column(LargeBinary)
    left_rows: Mapped[int] = mapped_column(BigInteger)
    left: Mapped[bytes] = mapped_column(LargeBinary)
    chain: Mapped[bytes] = mapped_column(LargeBinary)


class CondensedPostingRow(LedgerBase):
    """A balance: what the postings of a condensing came to on an account, by day (UTC)."""

    __tablename__ = "condensed_postings"
    __table_args__ = (Index(None, "account", "day_us"),)

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    line: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    account: Mapped[str]
    day_us: Mapped[int] = mapped_column(BigInteger)
    lines: Mapped[int] = mapped_column(BigInteger)
    amount_pusd: Mapped[int] = mapped_column(WideInteger)


class CondensedRefusalRow(LedgerBase):
    """How many requests of an hour were refused alike."""

    __tablename__ = "condensed_refusals"
    __table_args__ = (Index(None, "hour_us"),)

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    line: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    hour_us: Mapped[int] = mapped_column(BigInteger)
    org_id: Mapped[str]
    team_id: Mapped[str]
    model: Mapped[str]
    policy: Mapped[str]
    reason: Mapped[str]
    http_status: Mapped[int]
    scope: Mapped[str | None]
    requests: Mapped[int] = mapped_column(BigInteger)
