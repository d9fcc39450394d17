"""The seals over the books: each covers what came since the one before, and all that was before.

Written by `sealer` after the commit of what they cover, never with it; `ledger.verify.seals` reads
them.
"""

from sqlalchemy import BigInteger, Index, LargeBinary

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index
from ledger.orm.types import Json, Serial, WideInteger


class SealRow(LedgerBase):
    """One link. The `*_to` are the last `seq` of each table that this link looked at."""

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
    """An attempt that a link could not seal for good: it was open, or lost without evidence.

    `digest` is None for an open one, else what was sealed of the lost one; `sealed_in` the link
    that sealed it when it had settled.
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
    """An entry of the annex: proof of what seals leave out. `kind` and `subject`: see `annex`."""

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
    """The stand-in for retired attempts of a link: their number, their sums, their hash.

    A link's attempts go in parts; the last part has `ends`. `gone` is the digest of the leaves of
    this part, `left` that of what is left under the link after it, of which there are `left_rows`.
    `bookings` is the digest of its `RetiredBookingRow`s; null for a part that has none, as it was
    retired by an earlier release.
    """

    __tablename__ = "retirements"

    number: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    part: Stored[int] = define_column(primary_key=True, autoincrement=False)
    ends: Stored[bool]
    retired_us: Stored[int] = define_column(BigInteger)
    until_us: Stored[int] = define_column(BigInteger)  # all that went was opened before
    attempts: Stored[int] = define_column(BigInteger)
    posted: Stored[int] = define_column(BigInteger)  # of these, what had a cost
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
    """Costs booked for a provider's retired attempts, by quarters of an hour of their settles.

    Days of bills begin at a quarter of an hour of UTC in every time zone. `sure_pusd` and
    `uncertain_pusd` are costs (`invoices.bookings.is_uncertain`), `claimed_pusd` is what was
    claimed beyond them. Lines of a part are added once, with it.
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
    """The use and charges of retired attempts of own engines, by the hour of settlement."""

    __tablename__ = "retired_use"

    pool: Stored[str] = define_column(primary_key=True)
    hour_us: Stored[int] = define_column(BigInteger, primary_key=True, autoincrement=False)
    team_id: Stored[str] = define_column(primary_key=True)
    engine_us: Stored[int] = define_column(BigInteger)
    charged_pusd: Stored[int] = define_column(BigInteger)


class VerificationRow(LedgerBase):
    """The findings of one run of `ledger verify`: the first ones, and their number in `found`."""

    __tablename__ = "verifications"

    id: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    at_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    checks: Stored[list[str]] = define_column(Json)
    findings: Stored[list[dict[str, str]]] = define_column(Json)
    found: Stored[int] = define_column(BigInteger)
    disputed: Stored[int] = define_column(BigInteger)
