"""Stored conversations: answers, conversations and their items, encrypted.

A row states an object's owner, size and expiry. The content is `sealed` with the object's own key,
and that key is `wrapped_key`, encrypted with the deployment's key. Deleting the row destroys the
key.
"""

from sqlalchemy import BigInteger, Index, LargeBinary, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Serial


class StoredObjectRow(LedgerBase):
    """One object of a team. `parent` is the answer that it continues, or its conversation.

    `lease_us` is until when its worker is assumed to be alive; `cancel_us` is when its cancellation
    was requested.
    """

    __tablename__ = "stored_objects"
    __table_args__ = (
        UniqueConstraint("team_id", "id"),
        Index(None, "team_id", "kind", "seq"),
        Index(None, "team_id", "parent", "seq"),
        Index(None, "team_id", "size"),  # `verify` sums sizes without reading the content
        Index(None, "expires_us"),
    )

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    team_id: Stored[str]
    id: Stored[str]
    kind: Stored[str]  # response | chat | conversation | item
    parent: Stored[str | None]
    residency: Stored[str]  # any | internal_only: the strictest of its sources
    status: Stored[str | None]  # for a Response: queued | in_progress | completed | ...
    wrapped_key: Stored[bytes] = define_column(LargeBinary)
    sealed: Stored[bytes] = define_column(LargeBinary)
    size: Stored[int]  # bytes that count towards the team's limit
    created_us: Stored[int] = define_column(BigInteger)
    expires_us: Stored[int] = define_column(BigInteger)
    lease_us: Stored[int | None] = define_column(BigInteger)
    cancel_us: Stored[int | None] = define_column(BigInteger)


class StoredBytesRow(LedgerBase):
    """The size of a team's stored objects. A change locks this row first."""

    __tablename__ = "stored_bytes"

    team_id: Stored[str] = define_column(primary_key=True)
    bytes: Stored[int] = define_column(BigInteger)
