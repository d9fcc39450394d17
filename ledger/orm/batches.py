"""Clients' files, and the batches made from them.

A file is stored in chunk rows, so that every host and worker on the database sees it. A batch's
input is split into lines. One runner at a time holds a line under a lease. A line's answer stays in
its row until the output files are written. Times are microseconds since the Unix epoch.
"""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, false

from ledger.orm.base import LedgerBase, Stored, define_column
from ledger.orm.partial_index import partial_index
from ledger.orm.types import Json


class FileRow(LedgerBase):
    """A file. It is complete once `status` is `processed`; until then it is being written."""

    __tablename__ = "files"
    __table_args__ = (Index(None, "team_id", "id"),)

    id: Stored[str] = define_column(primary_key=True)  # ordered by time
    team_id: Stored[str]
    key_id: Stored[str]
    purpose: Stored[str]  # batch | batch_output
    filename: Stored[str]
    bytes: Stored[int] = define_column(BigInteger)
    status: Stored[str]  # uploading | processed
    created_us: Stored[int] = define_column(BigInteger)
    expires_us: Stored[int] = define_column(BigInteger, index=True)


class FileChunkRow(LedgerBase):
    __tablename__ = "file_chunks"

    file_id: Stored[str] = define_column(
        ForeignKey("files.id", ondelete="CASCADE"), primary_key=True
    )
    number: Stored[int] = define_column(primary_key=True)
    data: Stored[bytes] = define_column(LargeBinary)


class BatchRow(LedgerBase):
    """A batch. `owner` is validating or writing it until `lease_us`."""

    __tablename__ = "batches"
    __table_args__ = (Index(None, "team_id", "id"),)

    id: Stored[str] = define_column(primary_key=True)  # ordered by time
    team_id: Stored[str]
    key_id: Stored[str]
    endpoint: Stored[str]  # /v1/chat/completions, ...
    completion_window: Stored[str]
    status: Stored[str] = define_column(index=True)
    input_file_id: Stored[str]
    output_file_id: Stored[str | None]
    error_file_id: Stored[str | None]
    output_seconds: Stored[int | None] = define_column(BigInteger)  # the output files are kept
    errors: Stored[list[dict[str, Any]] | None] = define_column(Json)
    labels: Stored[dict[str, str] | None] = define_column("metadata", Json)
    usage: Stored[dict[str, Any] | None] = define_column(Json)  # sum of its answers' usage
    tags: Stored[str | None]  # tags of its lines, in the form of `x-breakeven-tags`
    total: Stored[int] = define_column(default=0)
    completed: Stored[int] = define_column(default=0)
    failed: Stored[int] = define_column(default=0)
    unanswered: Stored[int | None]  # part of `failed` that ended without an answer
    created_us: Stored[int] = define_column(BigInteger)
    expires_us: Stored[int] = define_column(BigInteger)
    in_progress_us: Stored[int | None] = define_column(BigInteger)
    finalizing_us: Stored[int | None] = define_column(BigInteger)
    completed_us: Stored[int | None] = define_column(BigInteger)
    failed_us: Stored[int | None] = define_column(BigInteger)
    expired_us: Stored[int | None] = define_column(BigInteger)
    cancelling_us: Stored[int | None] = define_column(BigInteger)
    cancelled_us: Stored[int | None] = define_column(BigInteger)
    owner: Stored[str | None]
    lease_us: Stored[int] = define_column(BigInteger, default=0)


class BatchLineRow(LedgerBase):
    """One request of a batch. `sent` counts its tries; each try has its own request id."""

    __tablename__ = "batch_lines"
    __table_args__ = (
        Index(None, "state", "model", "batch_id", "number"),
        partial_index(
            "ix_batch_lines_kept", "batch_id", "number", where="kept = 1", postgresql="kept"
        ),
    )

    batch_id: Stored[str] = define_column(
        ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True
    )
    number: Stored[int] = define_column(primary_key=True)  # its line in the input file
    custom_id: Stored[str]
    model: Stored[str]
    body: Stored[bytes] = define_column(LargeBinary)
    state: Stored[str]  # waiting | running | out (at a provider, as its batch) | done
    sent: Stored[int] = define_column(default=0)
    failures: Stored[int] = define_column(default=0)
    next_us: Stored[int] = define_column(BigInteger, default=0)  # not before
    owner: Stored[str | None]
    lease_us: Stored[int] = define_column(BigInteger, default=0)
    kept: Stored[bool] = define_column(default=False, server_default=false())  # not for providers
    ok: Stored[bool | None]
    answer: Stored[bytes | None] = define_column(LargeBinary)  # its line of an output file


class ProviderBatchRow(LedgerBase):
    """Lines of one batch that were sent to one provider as a batch.

    `state` is an `outgoing.ProviderBatchState`; `owner` does its next step until `lease_us`.
    `marked_us` is when a step began whose result at the provider may be unknown.
    """

    __tablename__ = "outgoing_batches"

    id: Stored[str] = define_column(primary_key=True)  # ordered by time
    batch_id: Stored[str]
    provider: Stored[str]
    upstream_model: Stored[str]
    endpoint: Stored[str]
    state: Stored[str] = define_column(index=True)
    created_us: Stored[int] = define_column(BigInteger)
    next_us: Stored[int] = define_column(BigInteger, default=0)  # not before
    tries: Stored[int] = define_column(default=0)  # of this step
    lines: Stored[int] = define_column(default=0)
    bytes: Stored[int] = define_column(BigInteger, default=0)
    marked_us: Stored[int | None] = define_column(BigInteger)
    cancel_us: Stored[int | None] = define_column(BigInteger)
    input_file_id: Stored[str | None]  # the provider's id, like the following ids
    remote_id: Stored[str | None]
    output_file_id: Stored[str | None]
    error_file_id: Stored[str | None]
    why: Stored[str | None]  # how it ended there
    owner: Stored[str | None]
    lease_us: Stored[int] = define_column(BigInteger, default=0)


class ProviderLineRow(LedgerBase):
    """A line as sent to the provider, until its attempt is settled.

    `terms` is an `outgoing.LineTerms`.
    """

    __tablename__ = "outgoing_lines"

    outgoing_id: Stored[str] = define_column(
        ForeignKey("outgoing_batches.id", ondelete="CASCADE"), primary_key=True
    )
    number: Stored[int] = define_column(primary_key=True)  # its line in the client's file
    attempt_id: Stored[str]
    custom_id: Stored[str]  # the client's
    sent: Stored[int]
    failures: Stored[int]
    body: Stored[bytes] = define_column(LargeBinary)
    terms: Stored[dict[str, Any]] = define_column(Json)
