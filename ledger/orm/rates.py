"""Per-minute limits that several hosts share: live hosts, and their shares of each limit.

This is the state of running work. A host admits at most its share, and the shares never exceed the
limit. Admissions themselves are in each host's own file.
"""

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index


class RateHostRow(LedgerBase):
    """A host. `holder` is the id of its rates file; `renewed_us` is the database's time."""

    __tablename__ = "rate_hosts"

    holder: Stored[str] = define_column(primary_key=True)
    host: Stored[str]
    renewed_us: Stored[int] = define_column(BigInteger)


class RateAccountRow(LedgerBase):
    """A limit that has shares. This row is locked while its shares change."""

    __tablename__ = "rate_accounts"

    name: Stored[str] = define_column(primary_key=True)


class RatePartRow(LedgerBase):
    """Requests and tokens that a host may admit in any 60 s, under the limits it knows.

    `kept_...` is the part that it keeps if it cannot renew its lease. `wanted_...` is what it lacks
    since `wanted_us`, null if nothing.
    """

    __tablename__ = "rate_parts"
    __table_args__ = (
        partial_index("ix_rate_parts_wanted", "name", where="wanted_us IS NOT NULL"),
        Index(None, "holder"),
    )

    name: Stored[str] = define_column(primary_key=True)
    holder: Stored[str] = define_column(primary_key=True)
    limit_requests: Stored[int | None] = define_column(BigInteger)
    limit_tokens: Stored[int | None] = define_column(BigInteger)
    requests: Stored[int] = define_column(BigInteger)
    tokens: Stored[int] = define_column(BigInteger)
    kept_requests: Stored[int] = define_column(BigInteger)
    kept_tokens: Stored[int] = define_column(BigInteger)
    wanted_requests: Stored[int] = define_column(BigInteger)
    wanted_tokens: Stored[int] = define_column(BigInteger)
    wanted_us: Stored[int | None] = define_column(BigInteger)
