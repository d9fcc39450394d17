"""The seals over the books: each covers what came since the one before, and all that was before.

Written by `sealer` after the commit of what they cover, never with it; read by `verify_seals`.
"""

from sqlalchemy import BigInteger, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase, Serial, WideInteger


class SealRow(LedgerBase):
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


class SealMarkRow(LedgerBase):
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


class RetirementRow(LedgerBase):
    """What stands for attempts of a link that were retired: how many, their sums, their hash.

    A link's attempts go in parts; the last part has `ends`. `gone` is the digest of the leaves of
    this part, `left` that of what is left under the link after it, of which there are `left_rows`.
    """

    __tablename__ = "retirements"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    part: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    ends: Mapped[bool]
    retired_us: Mapped[int] = mapped_column(BigInteger)
    until_us: Mapped[int] = mapped_column(BigInteger)  # all that went was opened before
    attempts: Mapped[int] = mapped_column(BigInteger)
    posted: Mapped[int] = mapped_column(BigInteger)  # of these, what had a cost
    input_tokens: Mapped[int] = mapped_column(BigInteger)
    output_tokens: Mapped[int] = mapped_column(BigInteger)
    engine_us: Mapped[int] = mapped_column(BigInteger)
    cost_pusd: Mapped[int] = mapped_column(WideInteger)
    gone: Mapped[bytes] = mapped_column(LargeBinary)
    left_rows: Mapped[int] = mapped_column(BigInteger)
    left: Mapped[bytes] = mapped_column(LargeBinary)
    chain: Mapped[bytes] = mapped_column(LargeBinary)  # of this part, its link, all parts before


class RetiredUseRow(LedgerBase):
    """What retired attempts of own engines used and were charged, by the hour they settled in."""

    __tablename__ = "retired_use"

    pool: Mapped[str] = mapped_column(primary_key=True)
    hour_us: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    team_id: Mapped[str] = mapped_column(primary_key=True)
    engine_us: Mapped[int] = mapped_column(BigInteger)
    charged_pusd: Mapped[int] = mapped_column(BigInteger)


class VerificationRow(LedgerBase):
    """What one run of `ledger verify` found; of many findings the first ones, `found` counts."""

    __tablename__ = "verifications"

    id: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    at_us: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str]
    checks: Mapped[list[str]] = mapped_column(Json)
    findings: Mapped[list[dict[str, str]]] = mapped_column(Json)
    found: Mapped[int] = mapped_column(BigInteger)
    disputed: Mapped[int] = mapped_column(BigInteger)
