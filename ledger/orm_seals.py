"""The seals over the books: each covers what came since the one before, and all that was before.

Written by `sealer` after the commit of what they cover, never with it; read by `verify_seals`.
"""

from sqlalchemy import BigInteger, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm_types import Base


class Seal(Base):
    """One link. The `*_to` are the last `seq` of each table that this link looked at."""

    __tablename__ = "seals"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    sealed_us: Mapped[int] = mapped_column(BigInteger)
    attempts_to: Mapped[int] = mapped_column(BigInteger)
    postings_to: Mapped[int] = mapped_column(BigInteger)
    refusals_to: Mapped[int] = mapped_column(BigInteger)
    prices_to: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int] = mapped_column(BigInteger)  # sealed by this link
    digest: Mapped[bytes] = mapped_column(LargeBinary)  # of these rows
    chain: Mapped[bytes] = mapped_column(LargeBinary)  # of this link and all before it


class SealMark(Base):
    """An attempt that a link could not seal for good: it was open, or lost without evidence.

    `digest` is None for an open one, else what was sealed of the lost one; `sealed_in` the link
    that sealed it when it had settled.
    """

    __tablename__ = "seal_marks"
    __table_args__ = (
        Index(None, "sealed_in"),
        Index(
            "ix_seal_marks_waiting",
            "attempt_seq",
            sqlite_where=text("sealed_in IS NULL"),
            postgresql_where=text("sealed_in IS NULL"),
        ),
    )

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    attempt_seq: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    sealed_in: Mapped[int | None] = mapped_column(BigInteger)
