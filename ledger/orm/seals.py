"""Seals over the ledger: each covers the rows since the last seal, and all seals before.

Written by `sealer` after the covered rows were committed, in a separate transaction;
`ledger.verify.seals` reads them.
"""

from sqlalchemy import BigInteger, Index, LargeBinary

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index
from ledger.orm.types import Json, Serial, WideInteger


class SealRow(LedgerBase):
    """One link of the chain. `..._to` are the last `seq` of each table that it covers."""

    __tablename__ = "seals"

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    sealed_us: Stored[int] = define_column(BigInteger)
    attempts_to: Stored[int] = define_column(BigInteger)
    postings_to: Stored[int] = define_column(BigInteger)
    refusals_to: Stored[int] = define_column(BigInteger)
    prices_to: Stored[int] = define_column(BigInteger)
    rows: Stored[int] = define_column(BigInteger)  # sealed by this link
    digest: Stored[bytes] = define_column(LargeBinary)  # of these rows
    chain: Stored[bytes] = define_column(LargeBinary)  # of this link and all before it


class SealMarkRow(LedgerBase):
    """An attempt that a link could not seal finally: open, or lost without evidence.

    `digest` is null for an open attempt, else the digest of the lost one. `sealed_in` is the link
    that sealed it after its settle.
    """

    __tablename__ = "seal_marks"
    __table_args__ = (
        Index(None, "sealed_in"),
        partial_index("ix_seal_marks_waiting", "attempt_seq", where="sealed_in IS NULL"),
    )

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    attempt_seq: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    digest: Stored[bytes | None] = define_column(LargeBinary)
    sealed_in: Stored[int | None] = define_column(BigInteger)


class SealAnnexRow(LedgerBase):
    """An annex entry: proof of rows that seals leave out.

    See `annex` for `kind` and `subject`.
    """

    __tablename__ = "seal_annexes"
    __table_args__ = (Index(None, "kind", "number"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    at_us: Stored[int] = define_column(BigInteger)
    kind: Stored[str]
    subject: Stored[str]
    rows: Stored[int] = define_column(BigInteger)
    digest: Stored[bytes] = define_column(LargeBinary)
    chain: Stored[bytes] = define_column(LargeBinary)  # of this entry and all before it


class RetirementRow(LedgerBase):
    """A retirement, which replaces attempts of a link by their number, sums and hash.

    A link's attempts are retired in parts; the last part has `ends`. `gone` is the digest of this
    part's leaves. `left` is the digest of the `left_rows` rows that remain under the link.
    `bookings` is the digest of its `RetiredBookingRow`s, null for a part without any, retired by an
    earlier release.
    """

    __tablename__ = "retirements"

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    part: Stored[int] = define_column(primary_key=True, autoincrement=False)
    ends: Stored[bool]
    retired_us: Stored[int] = define_column(BigInteger)
    until_us: Stored[int] = define_column(BigInteger)  # all retired attempts were opened before
    attempts: Stored[int] = define_column(BigInteger)
    posted: Stored[int] = define_column(BigInteger)  # attempts with a cost
    input_tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    engine_us: Stored[int] = define_column(BigInteger)
    cost_pusd: Stored[int] = define_column(WideInteger)
    gone: Stored[bytes] = define_column(LargeBinary)
    left_rows: Stored[int] = define_column(BigInteger)
    left: Stored[bytes] = define_column(LargeBinary)
    chain: Stored[bytes] = define_column(LargeBinary)  # of this part, its link, all parts before
    bookings: Stored[bytes | None] = define_column(LargeBinary)


class RetiredBookingRow(LedgerBase):
    """Booked costs of a provider's retired attempts, by quarter of an hour of their settle.

    Billing days start at a quarter of an hour of UTC in every time zone. `sure_pusd` and
    `uncertain_pusd` are costs (`invoices.bookings.is_uncertain`), `claimed_pusd` is claimed beyond
    them. Lines of a part are added once, with the part.
    """

    __tablename__ = "retired_bookings"
    __table_args__ = (Index(None, "provider", "start_us"),)

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    part: Stored[int] = define_column(primary_key=True, autoincrement=False)
    line: Stored[int] = define_column(primary_key=True, autoincrement=False)
    provider: Stored[str]
    start_us: Stored[int] = define_column(BigInteger)
    upstream_model: Stored[str]
    team_id: Stored[str]
    attempts: Stored[int] = define_column(BigInteger)
    sure_pusd: Stored[int] = define_column(WideInteger)
    uncertain_pusd: Stored[int] = define_column(WideInteger)
    claimed_pusd: Stored[int] = define_column(WideInteger)


class RetiredUseRow(LedgerBase):
    """Use and charges of retired attempts on own engines, by hour of settlement."""

    __tablename__ = "retired_use"

    pool: Stored[str] = define_column(primary_key=True)
    hour_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    team_id: Stored[str] = define_column(primary_key=True)
    engine_us: Stored[int] = define_column(BigInteger)
    charged_pusd: Stored[int] = define_column(BigInteger)


class VerificationRow(LedgerBase):
    """The result of one `ledger verify`: the first findings, and the total in `found`."""

    __tablename__ = "verifications"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    at_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    checks: Stored[list[str]] = define_column(Json)
    findings: Stored[list[dict[str, str]]] = define_column(Json)
    found: Stored[int] = define_column(BigInteger)
    disputed: Stored[int] = define_column(BigInteger)
