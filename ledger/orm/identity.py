"""Callers: organisations, their teams and users, and keys.

Ids are short readable text (`search`, `acme`). A key's id is the public part of its token, and only
an HMAC of the secret part is stored. Times are microseconds since the Unix epoch.
"""

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Json, Serial


class OrganisationRow(LedgerBase):
    __tablename__ = "organisations"

    id: Stored[str] = define_column(primary_key=True)
    name: Stored[str]
    created_us: Stored[int] = define_column(BigInteger)


class TeamRow(LedgerBase):
    """A team. `residency` and `isolation` bind all its keys; a key may only be stricter."""

    __tablename__ = "teams"

    id: Stored[str] = define_column(primary_key=True)
    org_id: Stored[str] = define_column(ForeignKey("organisations.id"), index=True)
    name: Stored[str]
    residency: Stored[str] = define_column(default="any")  # any | internal_only
    isolation: Stored[str] = define_column(default="team")  # team | org | none: prefix caches
    created_us: Stored[int] = define_column(BigInteger)


class UserRow(LedgerBase):
    __tablename__ = "users"

    id: Stored[str] = define_column(primary_key=True)
    org_id: Stored[str] = define_column(ForeignKey("organisations.id"), index=True)
    name: Stored[str]
    created_us: Stored[int] = define_column(BigInteger)


class KeyRow(LedgerBase):
    """A key. `line` is the first key of its line of rotations; null if it is the first.

    A key that a person or key made names its makers: `makers` are the lines of the keys, first
    maker first, and `member` is the person. `counts_on` are other keys whose budgets and limits
    also bind it.
    """

    __tablename__ = "keys"

    id: Stored[str] = define_column(primary_key=True)  # public part of the token
    secret_hash: Stored[bytes] = define_column(LargeBinary(32))  # HMAC-SHA-256(pepper, secret)
    name: Stored[str]
    org_id: Stored[str] = define_column(ForeignKey("organisations.id"))
    team_id: Stored[str] = define_column(ForeignKey("teams.id"), index=True)
    user_id: Stored[str | None] = define_column(ForeignKey("users.id"))
    scopes: Stored[list[str]] = define_column(Json)  # permissions: inference, admin, ...
    models: Stored[list[str] | None] = define_column(Json)  # None: every model
    residency: Stored[str] = define_column(default="any")
    tags: Stored[dict[str, str] | None] = define_column(Json)
    created_us: Stored[int] = define_column(BigInteger)
    expires_us: Stored[int | None] = define_column(BigInteger)
    revoked_us: Stored[int | None] = define_column(BigInteger)
    line: Stored[str | None]
    makers: Stored[list[str] | None] = define_column(Json)
    counts_on: Stored[list[str] | None] = define_column(Json)
    member: Stored[str | None]


class KeyChangeRow(LedgerBase):
    """A change of a key and its author. `ends_us` is when its `successor` replaces it."""

    __tablename__ = "key_changes"
    __table_args__ = (Index(None, "key_id", "seq"),)

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    key_id: Stored[str]
    event: Stored[str]  # made | rotated | revoked
    ends_us: Stored[int | None] = define_column(BigInteger)
    successor: Stored[str | None]
    actor: Stored[str]
    note: Stored[str | None]
    recorded_us: Stored[int] = define_column(BigInteger)


class MetaRow(LedgerBase):
    """Named numbers. `key_generation` rises with every change to keys, teams or users.

    `pepper_fingerprint` identifies the pepper that keys are hashed with.
    """

    __tablename__ = "meta"

    name: Stored[str] = define_column(primary_key=True)
    value: Stored[int] = define_column(BigInteger)


class SubmissionRow(LedgerBase):
    """A key's `Idempotency-Key`, and the request that it stands for until it expires."""

    __tablename__ = "submissions"

    key_id: Stored[str] = define_column(primary_key=True)
    name: Stored[str] = define_column(primary_key=True)  # as the client sent it
    digest: Stored[bytes] = define_column(LargeBinary(32))  # HMAC-SHA-256(pepper, path and body)
    request_id: Stored[str]
    expires_us: Stored[int] = define_column(BigInteger, index=True)


class KeptAnswerRow(LedgerBase):
    """The answer of a request with an `Idempotency-Key`, encrypted with the gateway's secret."""

    __tablename__ = "kept_answers"
    __table_args__ = (Index(None, "expires_us", "size"),)  # sums sizes without reading answers

    key_id: Stored[str] = define_column(primary_key=True)
    name: Stored[str] = define_column(primary_key=True)
    request_id: Stored[str]
    sealed: Stored[bytes] = define_column(LargeBinary)
    size: Stored[int]  # bytes of `sealed`
    expires_us: Stored[int] = define_column(BigInteger)
