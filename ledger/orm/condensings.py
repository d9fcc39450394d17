"""Tables that replace removed rows: holds by window, postings by day, others by hour.

Written by `retire` and `compact` in `ledger/seals/`; read by `compactions` and by the checks of
`verify`.
"""

from sqlalchemy import BigInteger, Index, LargeBinary

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import WideInteger


class RetiredHoldsRow(LedgerBase):
    """Sums of holds of retired attempts, by budget and window."""

    __tablename__ = "retired_holds"

    budget_id: Stored[str] = define_column(primary_key=True)
    window: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    holds: Stored[int] = define_column(BigInteger)
    actual_pusd: Stored[int] = define_column(WideInteger)


class PostingCompactionRow(LedgerBase):
    """A compaction that replaced postings and refusals: see `ledger/seals/compactions.py`."""

    __tablename__ = "condensings"

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    first_link: Stored[int] = define_column(BigInteger)
    last_link: Stored[int] = define_column(BigInteger)
    condensed_us: Stored[int] = define_column(BigInteger)
    entries: Stored[int] = define_column(BigInteger)  # entries of attempts with a cost
    postings: Stored[int] = define_column(BigInteger)
    refusals: Stored[int] = define_column(BigInteger)
    gone: Stored[bytes] = define_column(LargeBinary)
    left_rows: Stored[int] = define_column(BigInteger)
    left: Stored[bytes] = define_column(LargeBinary)
    chain: Stored[bytes] = define_column(LargeBinary)


class CondensedPostingRow(LedgerBase):
    """The sum of compacted postings on one account and day (UTC)."""

    __tablename__ = "condensed_postings"
    __table_args__ = (Index(None, "account", "day_us"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    line: Stored[int] = define_column(primary_key=True, autoincrement=False)
    account: Stored[str]
    day_us: Stored[int] = define_column(BigInteger)
    lines: Stored[int] = define_column(BigInteger)
    amount_pusd: Stored[int] = define_column(WideInteger)


class CondensedRefusalRow(LedgerBase):
    """The number of equal refusals in an hour."""

    __tablename__ = "condensed_refusals"
    __table_args__ = (Index(None, "hour_us"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    line: Stored[int] = define_column(primary_key=True, autoincrement=False)
    hour_us: Stored[int] = define_column(BigInteger)
    org_id: Stored[str]
    team_id: Stored[str]
    model: Stored[str]
    policy: Stored[str]
    reason: Stored[str]
    http_status: Stored[int]
    scope: Stored[str | None]
    requests: Stored[int] = define_column(BigInteger)


class CondensedHitRow(LedgerBase):
    """Sums of a team's removed cache hits in an hour; `number` is their annex entry's."""

    __tablename__ = "condensed_hits"
    __table_args__ = (Index(None, "hour_us"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    line: Stored[int] = define_column(primary_key=True, autoincrement=False)
    hour_us: Stored[int] = define_column(BigInteger)
    team_id: Stored[str]
    backend: Stored[str]
    hits: Stored[int] = define_column(BigInteger)
    unpriced: Stored[int] = define_column(BigInteger)
    avoided_pusd: Stored[int] = define_column(WideInteger)
    engine_us: Stored[int] = define_column(BigInteger)
