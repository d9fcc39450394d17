"""Files that clients keep here and the batches they make of them.

A file lies in chunk rows, so that every host and worker on one database sees it. A batch's input is
cut into lines, each taken by one runner at a time under a lease; a line's answer stays in its row
until the output files are written. Times are microseconds since the Unix epoch.
"""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, false, text
from sqlalchemy.orm import Mapped, mapped_column

from ledger.orm.types import Json, LedgerBase


class FileRow(LedgerBase):
    """Whole once `status` is `processed`; before, a client is sending it or a runner writes it."""

    __tablename__ = "files"
    __table_args__ = (Index(None, "team_id", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)  # ordered by time
    team_id: Mapped[str]
    key_id: Mapped[str]
    purpose: Mapped[str]  # batch | batch_output
    filename: Mapped[str]
    bytes: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str]  # uploading | processed
    created_us: Mapped[int] = mapped_column(BigInteger)
    expires_us: Mapped[int] = mapped_column(BigInteger, index=True)


class FileChunkRow(LedgerBase):
    __tablename__ = "file_chunks"

    file_id: Mapped[str] = mapped_column(
        ForeignKey("files.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


class BatchRow(LedgerBase):
    """`owner` has validating or writing it in hand until `lease_us`."""

    __tablename__ = "batches"
    __table_args__ = (Index(None, "team_id", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)  # ordered by time
    team_id: Mapped[str]
    key_id: Mapped[str]
    endpoint: Mapped[str]  # /v1/chat/completions, ...
    completion_window: Mapped[str]
    status: Mapped[str] = mapped_column(index=True)
    input_file_id: Mapped[str]
    output_file_id: Mapped[str | None]
    error_file_id: Mapped[str | None]
    output_seconds: Mapped[int | None] = mapped_column(BigInteger)  # the output files are kept
    errors: Mapped[list[dict[str, Any]] | None] = mapped_column(Json)
    labels: Mapped[dict[str, str] | None] = mapped_column("metadata", Json)
    total: Mapped[int] = mapped_column(default=0)
    completed: Mapped[int] = mapped_column(default=0)
    failed: Mapped[int] = mapped_column(default=0)
    created_us: Mapped[int] = mapped_column(BigInteger)
    expires_us: Mapped[int] = mapped_column(BigInteger)
    in_progress_us: Mapped[int | None] = mapped_column(BigInteger)
    finalizing_us: Mapped[int | None] = mapped_column(BigInteger)
    completed_us: Mapped[int | None] = mapped_column(BigInteger)
    failed_us: Mapped[int | None] = mapped_column(BigInteger)
    expired_us: Mapped[int | None] = mapped_column(BigInteger)
    cancelling_us: Mapped[int | None] = mapped_column(BigInteger)
    cancelled_us: Mapped[int | None] = mapped_column(BigInteger)
    owner: Mapped[str | None]
    lease_us: Mapped[int] = mapped_column(BigInteger, default=0)


class BatchLineRow(LedgerBase):
    """One request of a batch. `sent` counts its tries: each has a request id of its own."""

    __tablename__ = "batch_lines"
    __table_args__ = (
        Index(None, "state", "model", "batch_id", "number"),
        Index(
            "ix_batch_lines_kept",
            "batch_id",
            "number",
            sqlite_where=text("kept = 1"),
            postgresql_where=text("kept"),
        ),
    )

    batch_id: Mapped[str] = mapped_column(
        ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)  # its line in the input file
    custom_id: Mapped[str]
    model: Mapped[str]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    state: Mapped[str]  # waiting | running | out (at a provider, as its batch) | done
    sent: Mapped[int] = mapped_column(default=0)
    failures: Mapped[int] = mapped_column(default=0)
    next_us: Mapped[int] = mapped_column(BigInteger, default=0)  # not before
    owner: Mapped[str | None]
    lease_us: Mapped[int] = mapped_column(BigInteger, default=0)
    kept: Mapped[bool] = mapped_column(default=False, server_default=false())  # no provider's batch
    ok: Mapped[bool | None]
    answer: Mapped[bytes | None] = mapped_column(LargeBinary)  # its line of an output file


class ProviderBatchRow(LedgerBase):
    """Lines of one batch that are given to one provider, as a batch of its own.

    `state` is `outgoing.State`; `owner` takes its next step until `lease_us`. `marked_us`: when
    what may have reached the provider without our knowing was begun.
    """

    __tablename__ = "outgoing_batches"

    id: Mapped[str] = mapped_column(primary_key=True)  # ordered by time
    batch_id: Mapped[str]
    provider: Mapped[str]
    upstream_model: Mapped[str]
    endpoint: Mapped[str]
    state: Mapped[str] = mapped_column(index=True)
    created_us: Mapped[int] = mapped_column(BigInteger)
    next_us: Mapped[int] = mapped_column(BigInteger, default=0)  # not before
    tries: Mapped[int] = mapped_column(default=0)  # of this step
    lines: Mapped[int] = mapped_column(default=0)
    bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    marked_us: Mapped[int | None] = mapped_column(BigInteger)
    cancel_us: Mapped[int | None] = mapped_column(BigInteger)
    input_file_id: Mapped[str | None]  # the provider's, as all that follow
    remote_id: Mapped[str | None]
    output_file_id: Mapped[str | None]
    error_file_id: Mapped[str | None]
    why: Mapped[str | None]  # how it ended there
    owner: Mapped[str | None]
    lease_us: Mapped[int] = mapped_column(BigInteger, default=0)


class ProviderLineRow(LedgerBase):
    """A line as the provider gets it, until its attempt is settled. `terms`: `outgoing.Terms`."""

    __tablename__ = "outgoing_lines"

    outgoing_id: Mapped[str] = mapped_column(
        ForeignKey("outgoing_batches.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)  # its line in the client's file
    attempt_id: Mapped[str]
    custom_id: Mapped[str]  # the client's
    sent: Mapped[int]
    failures: Mapped[int]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    terms: Mapped[dict[str, Any]] = mapped_column(Json)
