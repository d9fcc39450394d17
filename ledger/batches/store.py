"""Batches in the database: created by clients, moved by runners from status to status.

    validating -> in_progress -> finalizing -> completed | expired
        |             |  `-> cancelling -> finalizing -> cancelled
        `-> failed    (cancelling also straight from validating)

A runner that validates or writes a batch holds its lease. Every change checks the lease in the same
statement, so a runner that lost it changes nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, null, select, update

from ledger.batches.files import drop_file, lock_team
from ledger.database import read_rows, reading, write_alone
from ledger.orm.batches import BatchLineRow, BatchRow, FileRow, ProviderBatchRow

VALIDATING, IN_PROGRESS, FINALIZING = "validating", "in_progress", "finalizing"
CANCELLING = "cancelling"
OPEN = (VALIDATING, IN_PROGRESS, FINALIZING, CANCELLING)
CANCELLABLE = (VALIDATING, IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A batch, and the counts of its lines.

    `labels` is the client's `metadata`. `completed` and `failed` are out of `total`. `usage` is the
    sum of its answers' usage: `None` until it ends, or if an answer states none. `unanswered` is
    the part of `failed` that ended without an answer, `None` in old rows. `tags` are those of its
    lines, in the form of `x-breakeven-tags`.
    """

    id: str
    team_id: str
    key_id: str
    endpoint: str
    completion_window: str
    input_file_id: str
    created_us: int
    expires_us: int
    labels: dict[str, str] | None = None
    output_seconds: int | None = None
    status: str = VALIDATING
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: list[dict[str, Any]] | None = None
    total: int = 0
    completed: int = 0
    failed: int = 0
    unanswered: int | None = None
    in_progress_us: int | None = None
    finalizing_us: int | None = None
    completed_us: int | None = None
    failed_us: int | None = None
    expired_us: int | None = None
    cancelling_us: int | None = None
    cancelled_us: int | None = None
    usage: dict[str, Any] | None = None
    tags: str | None = None


_COLUMNS = [getattr(BatchRow, name).label(name) for name in BatchRecord.__dataclass_fields__]
_LISTED = [null().label("errors") if named.name == "errors" else named for named in _COLUMNS]


class BatchStore:
    """Batches in the database. Calls block: use a thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, record: BatchRecord, *, most: int | None = None) -> bool:
        """Add a batch, unless the team has `most` unfinished ones. Return whether it exists."""
        there = select(BatchRow.id).where(BatchRow.id == record.id)
        opened = select(func.count()).where(
            BatchRow.team_id == record.team_id, BatchRow.status.in_(OPEN)
        )
        with self._engine.begin() as connection:
            if most is not None:
                lock_team(connection, record.team_id)
                if connection.execute(there).one_or_none() is not None:
                    return True
                if connection.execute(opened).scalar_one() >= most:
                    return False
            connection.execute(insert(BatchRow).values(**asdict(record), lease_us=0))
            return True

    def find(self, batch_id: str, team_id: str) -> BatchRecord | None:
        query = select(*_COLUMNS).where(BatchRow.id == batch_id, BatchRow.team_id == team_id)
        with reading(self._engine) as connection:
            return _record_of(connection.execute(query).one_or_none())

    def list_batches(
        self,
        team_id: str,
        *,
        prefix: str = "",
        after: str | None,
        before: str | None = None,
        limit: int,
    ) -> list[BatchRecord]:
        """Return at most `limit` of a team's batches with this id prefix, newest first.

        They follow the batch `after`, or come directly before the batch `before`. Their `errors`
        are left out; `find` returns them.
        """
        query = select(*_LISTED).where(
            BatchRow.team_id == team_id, BatchRow.id.startswith(prefix, autoescape=True)
        )
        if after is not None:
            query = query.where(BatchRow.id < after)
        if before is not None:
            query = query.where(BatchRow.id > before).order_by(BatchRow.id)
        else:
            query = query.order_by(BatchRow.id.desc())
        found = [BatchRecord(*row) for row in read_rows(self._engine, query.limit(limit))]
        return found if before is None else found[::-1]

    def cancel(self, batch_id: str, team_id: str, now_us: int) -> bool:
        """Cancel a batch, whose lines the runners end. Return `False` if it cannot be cancelled."""
        change = (
            update(BatchRow)
            .where(
                BatchRow.id == batch_id,
                BatchRow.team_id == team_id,
                BatchRow.status.in_(CANCELLABLE),
            )
            .values(status=CANCELLING, cancelling_us=now_us)
        )
        return write_alone(self._engine, change) == 1

    def delete_file(self, file_id: str, team_id: str) -> str | None:
        """Delete a file, unless a batch is about to read it. Return that batch's id, or `None`.

        Once a batch has read its file, it has its own lines.
        """
        about = (
            select(BatchRow.id)
            .where(BatchRow.input_file_id == file_id, BatchRow.status == VALIDATING)
            .limit(1)
        )
        with self._engine.begin() as connection:
            lock_team(connection, team_id)
            reader = connection.execute(about).scalar_one_or_none()
            if reader is None:
                drop_file(connection, file_id)
            return reader

    def delete(self, batch_id: str, team_id: str) -> None:
        """Delete an ended batch and its files, if it exists."""
        ours = (BatchRow.id == batch_id, BatchRow.team_id == team_id, BatchRow.status.not_in(OPEN))
        named = (BatchRow.input_file_id, BatchRow.output_file_id, BatchRow.error_file_id)
        with self._engine.begin() as connection:
            lock_team(connection, team_id)
            row = connection.execute(select(*named).where(*ours)).one_or_none()
            for file_id in filter(None, row or ()):
                drop_file(connection, file_id)
            connection.execute(delete(BatchRow).where(*ours))

    def unfinished(self) -> list[BatchRecord]:
        """Return the batches that runners must work on, oldest first."""
        query = select(*_COLUMNS).where(BatchRow.status.in_(OPEN)).order_by(BatchRow.id)
        return [BatchRecord(*row) for row in read_rows(self._engine, query)]

    def any_due(self, now_us: int) -> bool:
        """Return whether a runner has work: open batches, provider batches or expired files."""
        with reading(self._engine) as connection:
            due = select(FileRow.id).where(FileRow.expires_us <= now_us).limit(1)
            opened = select(BatchRow.id).where(BatchRow.status.in_(OPEN)).limit(1)
            out = select(ProviderBatchRow.id).where(ProviderBatchRow.state != "done").limit(1)
            return any(connection.execute(item).first() is not None for item in (opened, out, due))

    # -- for the holder of the lease ----------------------------------------------------------

    def lease(self, batch_id: str, owner: str, *, now_us: int, until_us: int) -> bool:
        """Take or renew the lease on a batch. Return `False` if another runner has it."""
        change = (
            update(BatchRow)
            .where(
                BatchRow.id == batch_id, (BatchRow.owner == owner) | (BatchRow.lease_us <= now_us)
            )
            .values(owner=owner, lease_us=until_us)
        )
        return write_alone(self._engine, change) == 1

    def move(self, batch_id: str, owner: str, since: Sequence[str], **values: Any) -> bool:
        """Change a batch that has one of these statuses and this owner. Return whether it had."""
        with self._engine.begin() as connection:
            return _move_batch(connection, batch_id, owner, since, values)

    def end(
        self, batch_id: str, owner: str, files: Sequence[tuple[str, int]], **values: Any
    ) -> bool:
        """End a batch: publish the output files (id, size) and delete the lines.

        Returns `False` if the lease was lost.
        """
        with self._engine.begin() as connection:
            if not _move_batch(connection, batch_id, owner, (FINALIZING,), values):
                return False
            for file_id, size in files:
                whole = update(FileRow).where(FileRow.id == file_id)
                connection.execute(whole.values(bytes=size, status="processed"))
            connection.execute(delete(BatchLineRow).where(BatchLineRow.batch_id == batch_id))
            return True

    def counts(self, batch_id: str) -> dict[bool | None, int]:
        """Return the number of lines by success; `None` is not done."""
        query = (
            select(BatchLineRow.ok, func.count())
            .where(BatchLineRow.batch_id == batch_id)
            .group_by(BatchLineRow.ok)
        )
        return {row[0]: row[1] for row in read_rows(self._engine, query)}


def _move_batch(
    connection: Connection, batch_id: str, owner: str, since: Sequence[str], values: Any
) -> bool:
    change = (
        update(BatchRow)
        .where(BatchRow.id == batch_id, BatchRow.owner == owner, BatchRow.status.in_(since))
        .values(**values)
    )
    return connection.execute(change).rowcount == 1


def _record_of(row: Any) -> BatchRecord | None:
    return None if row is None else BatchRecord(*row)
