"""The books: one row per upstream attempt, its postings, and what it would have cost elsewhere.

An attempt's row is inserted when its open record is applied and completed once, when its settle
is (`settled_us` is null until then). Postings are append-only; the lines of one `entry_id` add
up to zero. `flag` marks what a person should look at; it is never a reason to leave a row out.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import add

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Index,
    Integer,
    LargeBinary,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from ledger.journals.token_kinds import TOKEN_COLUMNS, TOKEN_KINDS, TokenKind
from ledger.orm.types import Json, LedgerBase, Serial


def _partial(name: str, then: str) -> Index:
    """Of rows that have `name`."""
    there = text(f"{name} IS NOT NULL")
    return Index(
        f"ix_attempts_{name}_{then}", name, then, sqlite_where=there, postgresql_where=there
    )


class AttemptRow(LedgerBase):
    """`records.AttemptOpened` and, after settling, `records.AttemptSettled`, as columns."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index(None, "team_id", "opened_us"),
        Index(None, "model", "opened_us"),
        Index(None, "target", "opened_us"),
        Index(
            "ix_attempts_unsettled",
            "journal",
            sqlite_where=text("settled_us IS NULL"),
            postgresql_where=text("settled_us IS NULL"),
        ),
        # What settled in a pool's open hour; rare rows, the latest first.
        _partial("pool", "settled_us"),
        _partial("flag", "opened_us"),
        _partial("spill_reason", "opened_us"),
    )

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    attempt_id: Mapped[str] = mapped_column(unique=True)
    request_id: Mapped[str] = mapped_column(index=True)
    attempt_no: Mapped[int]
    opened_us: Mapped[int] = mapped_column(BigInteger, index=True)
    key_id: Mapped[str]
    user_id: Mapped[str | None]
    team_id: Mapped[str]
    org_id: Mapped[str]
    kind: Mapped[str]
    stream: Mapped[bool]
    model: Mapped[str]
    target: Mapped[str]
    backend: Mapped[str]  # own | api
    pool: Mapped[str | None]
    engine: Mapped[str | None]
    provider: Mapped[str | None]
    upstream_model: Mapped[str]
    simulated: Mapped[bool]
    policy: Mapped[str]
    policy_version: Mapped[str]
    reason: Mapped[str]
    spill_reason: Mapped[str | None]
    price_version: Mapped[int | None] = mapped_column(BigInteger)
    bound_pusd: Mapped[int] = mapped_column(BigInteger)
    prompt_tokens_estimate: Mapped[int]
    ttft_predicted_us: Mapped[int | None] = mapped_column(BigInteger)
    kv_headroom_ppm: Mapped[int | None]
    bid_price_pusd_per_s: Mapped[int | None] = mapped_column(BigInteger)
    tags: Mapped[dict[str, str] | None] = mapped_column(Json)
    journal: Mapped[str]  # whose promise this row is: `JournalPosition.journal`
    settled_us: Mapped[int | None] = mapped_column(BigInteger)
    status: Mapped[str | None]  # records.Status, or `lost` while its outcome is unknown
    http_status: Mapped[int | None]
    basis: Mapped[str | None]  # reported | continuous | estimated | bound
    cost_pusd: Mapped[int | None] = mapped_column(BigInteger)
    ttft_us: Mapped[int | None] = mapped_column(BigInteger)
    duration_us: Mapped[int | None] = mapped_column(BigInteger)
    engine_us: Mapped[int | None] = mapped_column(BigInteger)
    finish_reason: Mapped[str | None]
    error: Mapped[str | None]
    slo_met: Mapped[bool | None]
    # unpriced | lost | disputed | over_bound | unknown_tier | late | partly_read | partly_priced |
    # unseen
    flag: Mapped[str | None]
    tier: Mapped[str | None]  # that the answer named, else its hold's if booked at its bound
    compared_with: Mapped[str | None]  # the first comparator, repeated here to spare a join
    compared_pusd: Mapped[int | None] = mapped_column(BigInteger)


_WIDE = 10**9
# The columns of the token kinds come last, in the order of their table.
for _kind in TOKEN_KINDS:
    _type = BigInteger() if _kind.limit > _WIDE else Integer()
    setattr(AttemptRow, _kind.column, mapped_column(_type, nullable=True))


def token_column(field: str) -> InstrumentedAttribute[int | None]:
    """Return the column of attempts that keeps a field of `Tokens`."""
    column: InstrumentedAttribute[int | None] = getattr(AttemptRow, TOKEN_COLUMNS[field])
    return column


def token_sum(kinds: Iterable[TokenKind]) -> ColumnElement[int]:
    """Return the sum of several kinds of one attempt; a kind without a count is 0."""
    counts: Iterator[ColumnElement[int]] = (
        func.coalesce(token_column(kind.field), 0) for kind in kinds
    )
    return reduce(add, counts)


class AttemptDecisionRow(LedgerBase):
    """Frozen inputs and verdicts of a decision (msgpack); kept apart, with its own retention."""

    __tablename__ = "decisions"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Mapped[str] = mapped_column(primary_key=True)
    opened_us: Mapped[int] = mapped_column(BigInteger)
    decision: Mapped[bytes] = mapped_column(LargeBinary)
    # of a policy that only watches; without a target it would have refused
    shadow_policy: Mapped[str | None]
    shadow_target: Mapped[str | None]
    shadow_reason: Mapped[str | None]
    inputs: Mapped[bytes | None] = mapped_column(LargeBinary)  # exact: it is decided again
    line_us: Mapped[int | None] = mapped_column(BigInteger)  # in the gateway's line for a place


class ComparedCostRow(LedgerBase):
    """What each comparator would have charged for an attempt, at its own rules."""

    __tablename__ = "compared"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Mapped[str] = mapped_column(primary_key=True)
    comparator: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int]  # 0 is the first of `compare_with`
    price_version: Mapped[int] = mapped_column(BigInteger)
    ratio_ppm: Mapped[int]
    cost_pusd: Mapped[int] = mapped_column(BigInteger)


class ClaimRow(LedgerBase):
    """A claim beyond an attempt's bound: it is owed if it is billed, and disputed.

    `plausible_pusd` is the part of the surplus that the model can have made, null where the record
    did not say; `counted_pusd` the part that the attempt's budgets count now. `resolution` is
    `claims.BILLED` or `claims.WAIVED`, null while the claim is open.
    """

    __tablename__ = "claims"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Mapped[str] = mapped_column(primary_key=True)
    settled_us: Mapped[int] = mapped_column(BigInteger, index=True)
    booked_pusd: Mapped[int] = mapped_column(BigInteger)
    claimed_pusd: Mapped[int] = mapped_column(BigInteger)
    plausible_pusd: Mapped[int | None] = mapped_column(BigInteger)
    counted_pusd: Mapped[int] = mapped_column(BigInteger, default=0)
    resolution: Mapped[str | None]
    resolved_us: Mapped[int | None] = mapped_column(BigInteger)
    resolved_by: Mapped[str | None]


class RefusalRow(LedgerBase):
    __tablename__ = "refusals"

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    request_id: Mapped[str] = mapped_column(unique=True)
    refused_us: Mapped[int] = mapped_column(BigInteger, index=True)
    key_id: Mapped[str]
    team_id: Mapped[str]
    org_id: Mapped[str]
    model: Mapped[str]
    policy: Mapped[str]
    reason: Mapped[str]
    http_status: Mapped[int]
    scope: Mapped[str | None]
    decision: Mapped[bytes | None] = mapped_column(LargeBinary)
    bound_pusd: Mapped[int | None] = mapped_column(BigInteger)
    room_pusd: Mapped[int | None] = mapped_column(BigInteger)
    limit_pusd: Mapped[int | None] = mapped_column(BigInteger)
    since_us: Mapped[int | None] = mapped_column(BigInteger)
    until_us: Mapped[int | None] = mapped_column(BigInteger)


class PostingRow(LedgerBase):
    """One line of a balanced entry: positive is debit, negative is credit."""

    __tablename__ = "postings"
    __table_args__ = (UniqueConstraint("entry_id", "line"), Index(None, "account", "at_us"))

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    entry_id: Mapped[str]  # an attempt id, or `gpu:{pool}:{hour_us}`
    line: Mapped[int]
    at_us: Mapped[int] = mapped_column(BigInteger)
    account: Mapped[str]
    amount_pusd: Mapped[int] = mapped_column(BigInteger)


class JournalPositionRow(LedgerBase):
    """How far each journal is applied; moved in the same transaction as what it covers."""

    __tablename__ = "journal_positions"

    journal: Mapped[str] = mapped_column(primary_key=True)
    worker: Mapped[str]
    host: Mapped[str]
    segment: Mapped[int] = mapped_column(BigInteger)
    offset: Mapped[int] = mapped_column(BigInteger)
    applied_us: Mapped[int] = mapped_column(BigInteger)


class HostNameRow(LedgerBase):
    """What a state directory, by its id, is called as a host; who writes for it, and since when.

    `place`: the directory on its kernel that wrote last; null: a file's ledger, or not yet.
    """

    __tablename__ = "hosts"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str] = mapped_column(unique=True)
    place: Mapped[str | None]
    said_us: Mapped[int] = mapped_column(BigInteger)  # by the database's clock


class QuarantinedRecordRow(LedgerBase):
    """A record that could not be applied, alone, with its reason: for a person to decide."""

    __tablename__ = "quarantine"
    __table_args__ = (UniqueConstraint("journal", "segment", "offset"),)

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    journal: Mapped[str]
    segment: Mapped[int] = mapped_column(BigInteger)
    offset: Mapped[int] = mapped_column(BigInteger)
    at_us: Mapped[int] = mapped_column(BigInteger)
    reason: Mapped[str]
    record: Mapped[bytes] = mapped_column(LargeBinary)


class PriceVersionRow(LedgerBase):
    """One price of one name from `since_us` on; never edited, only followed by the next."""

    __tablename__ = "price_versions"
    __table_args__ = (Index(None, "name", "since_us"),)

    version: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    name: Mapped[str]  # provider/model
    since_us: Mapped[int] = mapped_column(BigInteger)
    price: Mapped[dict[str, object]] = mapped_column(Json)
    source: Mapped[str]
    recorded_us: Mapped[int] = mapped_column(BigInteger)
    recorded_by: Mapped[str | None]
    import_seq: Mapped[int | None] = mapped_column(BigInteger)  # `PriceImport.seq`


class PriceImportRow(LedgerBase):
    """Who stored versions of a book, when, and from what; also a reading that changed nothing."""

    __tablename__ = "price_imports"

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    at_us: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str]
    origin: Mapped[str]  # `start`, or the source as it was named
    book: Mapped[str]
    digest: Mapped[str | None]  # SHA-256 of the file that was read
    read_on: Mapped[str | None]  # ISO day on which the whole source was last stated
    stored: Mapped[int]  # versions


class ConfigVersionRow(LedgerBase):
    __tablename__ = "config_versions"

    hash: Mapped[str] = mapped_column(primary_key=True)
    yaml: Mapped[str]
    applied_us: Mapped[int] = mapped_column(BigInteger)
