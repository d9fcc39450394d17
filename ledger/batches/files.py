"""Clients' files in the database: written and read in chunks, deleted when they expire.

Each call is one small transaction, so that long uploads and downloads do not block other writers. A
file is visible once it is complete, and only to its team.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Engine, Select, delete, func, insert, select, update

from ledger.database import read_row, read_rows, read_value, reading, write_alone
from ledger.idempotency import IdempotencyRecord, try_claim
from ledger.orm.batches import FileChunkRow, FileRow

CHUNK_BYTES = 1024 * 1024
UPLOADING, PROCESSED = "uploading", "processed"
ABANDONED_US = 3600 * 1_000_000  # incomplete files older than an hour are deleted
SWEPT = 16  # maximum files deleted by one call


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file's row. `bytes` counts what has arrived until the file is complete."""

    id: str
    team_id: str
    key_id: str
    purpose: str
    filename: str
    created_us: int
    expires_us: int
    bytes: int = 0
    status: str = UPLOADING


_COLUMNS = [getattr(FileRow, name) for name in FileRecord.__dataclass_fields__]


class SweptError(Exception):
    """The file was deleted as abandoned before this part of it arrived."""


class FileStore:
    """Clients' files in the database. Calls block: use a thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, record: FileRecord) -> None:
        write_alone(self._engine, insert(FileRow).values(**asdict(record)))

    def append(
        self, file_id: str, number: int, data: bytes, *, team_limit_bytes: int | None = None
    ) -> bool:
        """Append a chunk, numbered from 0 without gaps. Return whether the team has room for it.

        Raises `SweptError` if the file is gone.
        """
        with self._engine.begin() as connection:
            team = select(FileRow.team_id).where(FileRow.id == file_id)
            if team_limit_bytes is not None:
                team_id = connection.execute(team).scalar_one_or_none() or ""
                lock_team(connection, team_id)
                kept = int(connection.execute(_stored_bytes_query(team_id)).scalar_one())
                if kept + len(data) > team_limit_bytes:
                    return False
            grown = (
                update(FileRow).where(FileRow.id == file_id).values(bytes=FileRow.bytes + len(data))
            )
            if not connection.execute(grown).rowcount:
                raise SweptError(file_id)
            row = {"file_id": file_id, "number": number, "data": data}
            connection.execute(insert(FileChunkRow).values(**row))
            return True

    def finish(self, whole: FileRecord) -> bool:
        """Make the file visible with these values. Return `False` if it was deleted before."""
        with self._engine.begin() as connection:
            return _mark_processed(connection, whole)

    def finish_once(
        self, whole: FileRecord, asking: IdempotencyRecord, *, until_us: int
    ) -> IdempotencyRecord | None:
        """Finish a file and claim its `Idempotency-Key`, which then names the file.

        Returns the request that owns the key: `asking` if the key was free. Both happen in one
        transaction, so that no key names an incomplete file. `None` if the file was deleted, or the
        key was just freed.
        """
        with self._engine.connect() as connection, connection.begin() as transaction:
            first = try_claim(connection, asking, now_us=whole.created_us, expires_us=until_us)
            if first is asking and not _mark_processed(connection, whole):
                transaction.rollback()
                return None
            return first

    def drop(self, file_id: str) -> None:
        with self._engine.begin() as connection:
            drop_file(connection, file_id)

    def find(self, file_id: str, team_id: str) -> FileRecord | None:
        """Return a complete file of this team, or `None`."""
        query = select(*_COLUMNS).where(
            FileRow.id == file_id, FileRow.team_id == team_id, FileRow.status == PROCESSED
        )
        row = read_row(self._engine, query)
        return None if row is None else FileRecord(*row)

    def list_files(
        self,
        team_id: str,
        *,
        purpose: str | None,
        after: str | None,
        limit: int,
        newest_first: bool,
    ) -> list[FileRecord]:
        """Return at most `limit` complete files that follow the file `after`."""
        query = select(*_COLUMNS).where(FileRow.team_id == team_id, FileRow.status == PROCESSED)
        if purpose is not None:
            query = query.where(FileRow.purpose == purpose)
        if after is not None:
            query = query.where(FileRow.id < after if newest_first else FileRow.id > after)
        query = query.order_by(FileRow.id.desc() if newest_first else FileRow.id).limit(limit)
        return [FileRecord(*row) for row in read_rows(self._engine, query)]

    def stored_bytes(self, team_id: str) -> int:
        """Return the bytes of a team's files, including those that are arriving."""
        return int(read_value(self._engine, _stored_bytes_query(team_id)) or 0)

    def chunk(self, file_id: str, number: int) -> bytes | None:
        query = select(FileChunkRow.data).where(
            FileChunkRow.file_id == file_id, FileChunkRow.number == number
        )
        return read_value(self._engine, query)

    def chunks(self, file_id: str) -> Iterator[bytes]:
        """Yield the file's chunks, each read in its own transaction."""
        number = 0
        while (data := self.chunk(file_id, number)) is not None:
            yield data
            number += 1

    def sweep(self, now_us: int) -> int:
        """Delete expired and abandoned files, at most `SWEPT`. Return their number."""
        due = (FileRow.expires_us <= now_us) | (
            (FileRow.status == UPLOADING) & (FileRow.created_us <= now_us - ABANDONED_US)
        )
        with reading(self._engine) as connection:
            found = list(connection.execute(select(FileRow.id).where(due).limit(SWEPT)).scalars())
        for file_id in found:
            self.drop(file_id)
        return len(found)


def _mark_processed(connection: Connection, whole: FileRecord) -> bool:
    values = {**asdict(whole), "status": PROCESSED}
    change = update(FileRow).where(FileRow.id == whole.id).values(**values)
    return connection.execute(change).rowcount == 1


def drop_file(connection: Connection, file_id: str) -> None:
    connection.execute(delete(FileChunkRow).where(FileChunkRow.file_id == file_id))
    connection.execute(delete(FileRow).where(FileRow.id == file_id))


def lock_team(connection: Connection, team_id: str) -> None:
    """Lock the team's stored files until the transaction ends, against concurrent additions.

    SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        name = func.hashtext(f"files of {team_id}")
        connection.execute(select(func.pg_advisory_xact_lock(name)))


def _stored_bytes_query(team_id: str) -> Select[int]:
    return select(func.coalesce(func.sum(FileRow.bytes), 0)).where(FileRow.team_id == team_id)
