"""Limits of a minute that several hosts share: who is alive, and which part of each limit is whose.

State of work under way. A host lets in no more than its part, and the parts of a limit never add
up to more than it; what was let in stands in each host's own file, not here.
"""

from sqlalchemy import BigInteger, Index

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index


class RateHostRow(LedgerBase):
    """`holder` is the host's file of rates, by its id; the stamp is the database's clock."""

    __tablename__ = "rate_hosts"

    holder: Stored[str] = define_column(primary_key=True)
    host: Stored[str]
    renewed_us: Stored[int] = define_column(BigInteger)


class RateAccountRow(LedgerBase):
    """One row a limit that anybody has a part of: it is locked while parts of it change."""

    __tablename__ = "rate_accounts"

    name: Stored[str] = define_column(primary_key=True)


class RatePartRow(LedgerBase):
    """Requests and tokens of any 60 s that a host may let in, under limits as it knows them.

    `kept_...`: of that, what it goes on with when it cannot renew its lease. `wanted_...`: what it
    misses, since `wanted_us`; null: nothing.
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
