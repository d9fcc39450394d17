"""Stored conversations: answers, conversations and their items, encrypted.

The rows tell who owns an object, how large it is and how long it stays. What it says is `sealed`
under a key of its own, and that key is `wrapped_key`, encrypted by the deployment's: whoever
deletes the row destroys the key with it.
"""

from sqlalchemy import BigInteger, Index, LargeBinary, UniqueConstraint

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.types import Serial


class StoredObjectRow(LedgerBase):
    """One object of a team. `parent`: the answer that it continues, or its conversation.

    `lease_us`: until when the worker that makes it is believed to live; `cancel_us`: when somebody
    asked for its end.
    """

    __tablename__ = "stored_objects"
    __table_args__ = (
        UniqueConstraint("team_id", "id"),
        Index(None, "team_id", "kind", "seq"),
        Index(None, "team_id", "parent", "seq"),
        Index(None, "team_id", "size"),  # `verify` adds sizes up without reading what lies there
        Index(None, "expires_us"),
    )

    seq: Stored[int] = define_column(Serial, primary_key=True, autoincrement=True)
    team_id: Stored[str]
    id: Stored[str]
    kind: Stored[str]  # response | chat | conversation | item
    parent: Stored[str | None]
    residency: Stored[str]  # any | internal_only: the tightest of what it was made from
    status: Stored[str | None]  # of a Response: queued | in_progress | completed | ...
    wrapped_key: Stored[bytes] = define_column(LargeBinary)
    sealed: Stored[bytes] = define_column(LargeBinary)
    size: Stored[int]  # bytes that count towards the team's limit
    created_us: Stored[int] = define_column(BigInteger)
    expires_us: Stored[int] = define_column(BigInteger)
    lease_us: Stored[int | None] = define_column(BigInteger)
    cancel_us: Stored[int | None] = define_column(BigInteger)


class StoredBytesRow(LedgerBase):
    """The size of a team's stored objects; a change locks this row first."""

    __tablename__ = "stored_bytes"

    team_id: Stored[str] = define_column(primary_key=True)
    bytes: Stored[int] = define_column(BigInteger)
