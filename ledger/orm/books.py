"""The main tables: one row per upstream attempt, its postings, and its comparators' costs.

An attempt's row is inserted when its open record is applied and completed once, by its settle
(`settled_us` is null until then). Postings are append-only; the lines of one `entry_id` sum to
zero. `flag` marks rows that a person should check; flagged rows count like others.
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

from ledger.journals.token_kinds import TOKEN_COLUMNS, TOKEN_KINDS, TokenKind
from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index
from ledger.orm.types import Json, Serial

LOST = "lost"  # status and flag of an attempt whose end is unknown


def _partial(name: str, then: str) -> Index:
    """Return an index of rows that have `name`."""
    return partial_index(f"ix_attempts_{name}_{then}", name, then, where=f"{name} IS NOT NULL")


class AttemptRow(LedgerBase):
    """An attempt: `records.AttemptOpened` and, once settled, `records.AttemptSettled`."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index(None, "team_id", "opened_us"),
        Index(None, "model", "opened_us"),
        Index(None, "target", "opened_us"),
        partial_index("ix_attempts_unsettled", "journal", where="settled_us IS NULL"),
        # Attempts that settled in a pool's open hour, then indexes of rare rows, by time.
        _partial("pool", "settled_us"),
        _partial("flag", "opened_us"),
        _partial("spill_reason", "opened_us"),
    )

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    attempt_id: Stored[str] = define_column(unique=True)
    request_id: Stored[str] = define_column(index=True)
    attempt_no: Stored[int]
    opened_us: Stored[int] = define_column(BigInteger, index=True)
    key_id: Stored[str]
    user_id: Stored[str | None]
    team_id: Stored[str]
    org_id: Stored[str]
    kind: Stored[str]
    stream: Stored[bool]
    model: Stored[str]
    target: Stored[str]
    backend: Stored[str]  # own | api
    pool: Stored[str | None]
    engine: Stored[str | None]
    provider: Stored[str | None]
    upstream_model: Stored[str]
    simulated: Stored[bool]
    policy: Stored[str]
    policy_version: Stored[str]
    reason: Stored[str]
    spill_reason: Stored[str | None]
    price_version: Stored[int | None] = define_column(BigInteger)
    bound_pusd: Stored[int] = define_column(BigInteger)
    prompt_tokens_estimate: Stored[int]
    ttft_predicted_us: Stored[int | None] = define_column(BigInteger)
    kv_headroom_ppm: Stored[int | None]
    bid_price_pusd_per_s: Stored[int | None] = define_column(BigInteger)
    content: Stored[str | None]  # detected kinds and the action; null: not inspected
    tags: Stored[dict[str, str] | None] = define_column(Json)
    journal: Stored[str]  # the journal of its records: `JournalPositionRow.journal`
    settled_us: Stored[int | None] = define_column(BigInteger)
    status: Stored[str | None]  # records.Status, or `lost` while its outcome is unknown
    http_status: Stored[int | None]
    basis: Stored[str | None]  # reported | continuous | estimated | bound
    cost_pusd: Stored[int | None] = define_column(BigInteger)
    ttft_us: Stored[int | None] = define_column(BigInteger)
    duration_us: Stored[int | None] = define_column(BigInteger)
    engine_us: Stored[int | None] = define_column(BigInteger)
    finish_reason: Stored[str | None]
    error: Stored[str | None]
    slo_met: Stored[bool | None]
    # unpriced | lost | disputed | over_bound | unknown_tier | late | partly_read | partly_priced |
    # unseen
    flag: Stored[str | None]
    tier: Stored[str | None]  # the answer's tier, or the hold's if booked at its bound
    compared_with: Stored[str | None]  # the first comparator, repeated here to spare a join
    compared_pusd: Stored[int | None] = define_column(BigInteger)


_WIDE = 10**9
# The columns of the token kinds come last, in the order of their table.
for _kind in TOKEN_KINDS:
    _type = BigInteger() if _kind.limit > _WIDE else Integer()
    AttemptRow.append_column(_kind.column, _type)


def token_column(field: str) -> Stored[int | None]:
    """Return the column of attempts for a field of `TokenCounts`."""
    column: Stored[int | None] = getattr(AttemptRow, TOKEN_COLUMNS[field])
    return column


def token_sum(kinds: Iterable[TokenKind]) -> ColumnElement[int]:
    """Return the SQL sum of several kinds of one attempt; a missing count is 0."""
    counts: Iterator[ColumnElement[int]] = (
        func.coalesce(token_column(kind.field), 0) for kind in kinds
    )
    return reduce(add, counts)


class AttemptDecisionRow(LedgerBase):
    """Frozen inputs and verdicts of a decision (msgpack), with their own retention."""

    __tablename__ = "decisions"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Stored[str] = define_column(primary_key=True)
    opened_us: Stored[int] = define_column(BigInteger)
    decision: Stored[bytes] = define_column(LargeBinary)
    # The decision of a shadow policy; without a target it would have refused.
    shadow_policy: Stored[str | None]
    shadow_target: Stored[str | None]
    shadow_reason: Stored[str | None]
    inputs: Stored[bytes | None] = define_column(LargeBinary)  # exact, to repeat the decision
    line_us: Stored[int | None] = define_column(BigInteger)  # time in the gateway's queue


class ComparedCostRow(LedgerBase):
    """The cost of an attempt at each comparator, by the comparator's own rules."""

    __tablename__ = "compared"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Stored[str] = define_column(primary_key=True)
    comparator: Stored[str] = define_column(primary_key=True)
    position: Stored[int]  # 0 is the first of `compare_with`
    price_version: Stored[int] = define_column(BigInteger)
    ratio_ppm: Stored[int]
    cost_pusd: Stored[int] = define_column(BigInteger)
    # Prompt tokens assumed to be in the provider's cache; null in old rows or for other units.
    cached_tokens: Stored[int | None]


class AttemptLegRow(LedgerBase):
    """One engine's part in an attempt that took two engines: `records.AttemptLeg`."""

    __tablename__ = "attempt_legs"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Stored[str] = define_column(primary_key=True)
    position: Stored[int] = define_column(primary_key=True)  # in the order of their work
    engine: Stored[str]
    role: Stored[str]  # prefill | decode
    busy_us: Stored[int] = define_column(BigInteger)
    kv_tokens: Stored[int] = define_column(BigInteger)
    held_us: Stored[int] = define_column(BigInteger)
    transfer_us: Stored[int | None] = define_column(BigInteger)
    outcome: Stored[str]  # done | failed | left


class ClaimRow(LedgerBase):
    """A claim beyond an attempt's bound. It is disputed, and owed only if it is billed.

    `plausible_pusd` is the part of the surplus that the model can have produced, null if the record
    did not state it. `counted_pusd` is the part that budgets count now. `resolution` is
    `open_claims.BILLED` or `open_claims.WAIVED`, null while the claim is open.
    """

    __tablename__ = "claims"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012  (SQLAlchemy's declarative form)

    attempt_id: Stored[str] = define_column(primary_key=True)
    settled_us: Stored[int] = define_column(BigInteger, index=True)
    booked_pusd: Stored[int] = define_column(BigInteger)
    claimed_pusd: Stored[int] = define_column(BigInteger)
    plausible_pusd: Stored[int | None] = define_column(BigInteger)
    counted_pusd: Stored[int] = define_column(BigInteger, default=0)
    resolution: Stored[str | None]
    resolved_us: Stored[int | None] = define_column(BigInteger)
    resolved_by: Stored[str | None]


class RefusalRow(LedgerBase):
    __tablename__ = "refusals"

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    request_id: Stored[str] = define_column(unique=True)
    refused_us: Stored[int] = define_column(BigInteger, index=True)
    key_id: Stored[str]
    team_id: Stored[str]
    org_id: Stored[str]
    model: Stored[str]
    policy: Stored[str]
    reason: Stored[str]
    http_status: Stored[int]
    scope: Stored[str | None]
    decision: Stored[bytes | None] = define_column(LargeBinary)
    bound_pusd: Stored[int | None] = define_column(BigInteger)
    room_pusd: Stored[int | None] = define_column(BigInteger)
    limit_pusd: Stored[int | None] = define_column(BigInteger)
    since_us: Stored[int | None] = define_column(BigInteger)
    until_us: Stored[int | None] = define_column(BigInteger)
    content: Stored[str | None]  # as in attempts


class CacheHitRow(LedgerBase):
    """A request answered from the response cache (`records.CacheHit`), and its avoided cost.

    It is not an attempt and has no posting, because no target was called and nothing is billed.
    """

    __tablename__ = "cache_hits"

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    request_id: Stored[str] = define_column(unique=True)
    hit_us: Stored[int] = define_column(BigInteger, index=True)
    key_id: Stored[str]
    user_id: Stored[str | None]
    team_id: Stored[str]
    org_id: Stored[str]
    kind: Stored[str]
    stream: Stored[bool]
    model: Stored[str]
    policy: Stored[str]
    target: Stored[str]
    backend: Stored[str]  # own | api
    answered_by: Stored[str]  # `AttemptRow.request_id` of the first request
    age_us: Stored[int] = define_column(BigInteger)
    input_tokens: Stored[int] = define_column(BigInteger)
    output_tokens: Stored[int] = define_column(BigInteger)
    avoided_pusd: Stored[int | None] = define_column(BigInteger)  # null: it has no price
    engine_us: Stored[int] = define_column(BigInteger)
    tags: Stored[dict[str, str] | None] = define_column(Json)


class PostingRow(LedgerBase):
    """One line of a balanced entry: positive is debit, negative is credit."""

    __tablename__ = "postings"
    __table_args__ = (UniqueConstraint("entry_id", "line"), Index(None, "account", "at_us"))

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    entry_id: Stored[str]  # an attempt id, or `gpu:{pool}:{hour_us}`
    line: Stored[int]
    at_us: Stored[int] = define_column(BigInteger)
    account: Stored[str]
    amount_pusd: Stored[int] = define_column(BigInteger)


class JournalPositionRow(LedgerBase):
    """The applied position of each journal, moved in the transaction that applies its records.

    `sequence` is the number of the next frame in format 2: 0 if none was read, and
    `ledger.writing.repository.ENDED` once the whole journal is applied.
    """

    __tablename__ = "journal_positions"

    journal: Stored[str] = define_column(primary_key=True)
    worker: Stored[str]
    host: Stored[str]
    segment: Stored[int] = define_column(BigInteger)
    offset: Stored[int] = define_column(BigInteger)
    applied_us: Stored[int] = define_column(BigInteger)
    sequence: Stored[int] = define_column(BigInteger, default=0, server_default=text("0"))


class HostNameRow(LedgerBase):
    """The host name of a state directory, by its id, with its writer.

    `place` is the directory, on its kernel, that wrote last; null for a ledger in a file, or before
    the first write. `said_us` is when its writer last claimed the name.
    """

    __tablename__ = "hosts"

    name: Stored[str] = define_column(primary_key=True)
    holder: Stored[str] = define_column(unique=True)
    place: Stored[str | None]
    said_us: Stored[int] = define_column(BigInteger)  # by the database's clock


class QuarantinedRecordRow(LedgerBase):
    """A record that could not be applied, with the reason, for a person to decide."""

    __tablename__ = "quarantine"
    __table_args__ = (UniqueConstraint("journal", "segment", "offset"),)

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    journal: Stored[str]
    segment: Stored[int] = define_column(BigInteger)
    offset: Stored[int] = define_column(BigInteger)
    at_us: Stored[int] = define_column(BigInteger)
    reason: Stored[str]
    record: Stored[bytes] = define_column(LargeBinary)


class PriceVersionRow(LedgerBase):
    """One price of one name from `since_us` on. Rows are never edited; a newer row follows."""

    __tablename__ = "price_versions"
    __table_args__ = (Index(None, "name", "since_us"),)

    version: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    name: Stored[str]  # provider/model
    since_us: Stored[int] = define_column(BigInteger)
    price: Stored[dict[str, object]] = define_column(Json)
    source: Stored[str]
    recorded_us: Stored[int] = define_column(BigInteger)
    recorded_by: Stored[str | None]
    import_seq: Stored[int | None] = define_column(BigInteger)  # `PriceImportRow.seq`


class PriceImportRow(LedgerBase):
    """An import of a price book: author, time and source.

    A reading that changed nothing has a row, too.
    """

    __tablename__ = "price_imports"

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    at_us: Stored[int] = define_column(BigInteger)
    actor: Stored[str]
    origin: Stored[str]  # `start`, or the source as it was named
    book: Stored[str]
    digest: Stored[str | None]  # SHA-256 of the file that was read
    read_on: Stored[str | None]  # ISO day on which the whole source was last stated
    stored: Stored[int]  # versions


class ConfigVersionRow(LedgerBase):
    __tablename__ = "config_versions"

    hash: Stored[str] = define_column(primary_key=True)
    yaml: Stored[str]
    applied_us: Stored[int] = define_column(BigInteger)
