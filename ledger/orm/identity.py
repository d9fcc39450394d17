"""Who asks: organisations, their teams and users, and the keys they hold.

Ids are short readable text (`search`, `acme`); a key's id is the public part of its token, and
only an HMAC of the secret part is kept. Times are microseconds since the Unix epoch.
"""

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase, Serial


class OrganisationRow(LedgerBase):
    __tablename__ = "organisations"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    created_us: Mapped[int] = mapped_column(BigInteger)


class TeamRow(LedgerBase):
    """`residency` and `isolation` bind every key of the team; keys may only tighten them."""

    __tablename__ = "teams"

    id: Mapped[str] = mapped_column(primary_key=True)
    org_id: Mapped[str] = mapped_column(ForeignKey("organisations.id"), index=True)
    name: Mapped[str]
    residency: Mapped[str] = mapped_column(default="any")  # any | internal_only
    isolation: Mapped[str] = mapped_column(default="team")  # team | org | none: prefix caches
    created_us: Mapped[int] = mapped_column(BigInteger)


class UserRow(LedgerBase):
    __tablename__ = "users"

    id: Mapped[str] = mapped_column(primary_key=True)
    org_id: Mapped[str] = mapped_column(ForeignKey("organisations.id"), index=True)
    name: Mapped[str]
    created_us: Mapped[int] = mapped_column(BigInteger)


class KeyRow(LedgerBase):
    __tablename__ = "keys"

    id: Mapped[str] = mapped_column(primary_key=True)  # public part of the token
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary(32))  # HMAC-SHA-256(pepper, secret)
    name: Mapped[str]
    org_id: Mapped[str] = mapped_column(ForeignKey("organisations.id"))
    team_id: Mapped[str] = mapped_column(ForeignKey("teams.id"), index=True)
    user_id: Mapped[str | None] = mapped_column(ForeignKey("users.id"))
    scopes: Mapped[list[str]] = mapped_column(Json)  # what the key may do: inference, admin, ...
    models: Mapped[list[str] | None] = mapped_column(Json)  # None: every model
    residency: Mapped[str] = mapped_column(default="any")
    tags: Mapped[dict[str, str] | None] = mapped_column(Json)
    created_us: Mapped[int] = mapped_column(BigInteger)
    expires_us: Mapped[int | None] = mapped_column(BigInteger)
    revoked_us: Mapped[int | None] = mapped_column(BigInteger)


class KeyChangeRow(LedgerBase):
    """What was done with a key, by whom; `ends_us`: when it gives way to its `successor`."""

    __tablename__ = "key_changes"
    __table_args__ = (Index(None, "key_id", "seq"),)

    seq: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    key_id: Mapped[str]
    event: Mapped[str]  # made | rotated | revoked
    ends_us: Mapped[int | None] = mapped_column(BigInteger)
    successor: Mapped[str | None]
    actor: Mapped[str]
    note: Mapped[str | None]
    recorded_us: Mapped[int] = mapped_column(BigInteger)


class MetaRow(LedgerBase):
    """Named numbers: `key_generation` rises with every change to keys, teams or users.

    `pepper_fingerprint` tells whose pepper the keys are hashed with.
    """

    __tablename__ = "meta"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)


class SubmissionRow(LedgerBase):
    """An `Idempotency-Key` of a key, and the request that it stands for until it expires."""

    __tablename__ = "submissions"

    key_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)  # as the client sent it
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))  # HMAC-SHA-256(pepper, path and body)
    request_id: Mapped[str]
    expires_us: Mapped[int] = mapped_column(BigInteger, index=True)


class KeptAnswerRow(LedgerBase):
    """What the request of a submission was answered, sealed by the gateway's secret."""

    __tablename__ = "kept_answers"
    __table_args__ = (Index(None, "expires_us", "size"),)  # the sum of sizes reads no answer

    key_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    request_id: Mapped[str]
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    size: Mapped[int]  # bytes of `sealed`
    expires_us: Mapped[int] = mapped_column(BigInteger)
