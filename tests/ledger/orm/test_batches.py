"""A chunk belongs to a file and a line to a batch: neither stands twice or alone."""

import pytest
from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.orm.batches import FileChunkRow, FileRow

FILE = {
    "id": "file-1", "team_id": "search", "key_id": "k", "purpose": "batch", "filename": "a",
    "bytes": 0, "status": "uploading", "created_us": 1, "expires_us": 2,
}  # fmt: skip
CHUNK = {"file_id": "file-1", "number": 0, "data": b"\x00"}


def test_a_chunk_needs_its_file_and_stands_once(engine):
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(FileChunkRow).values(**CHUNK))
    with engine.begin() as connection:
        connection.execute(insert(FileRow).values(**FILE))
        connection.execute(insert(FileChunkRow).values(**CHUNK))
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(FileChunkRow).values(**CHUNK))


def test_a_deleted_file_takes_its_chunks_along(engine):
    with engine.begin() as connection:
        connection.execute(insert(FileRow).values(**FILE))
        connection.execute(insert(FileChunkRow).values(**CHUNK))
        connection.execute(delete(FileRow))
        assert connection.execute(select(func.count()).select_from(FileChunkRow)).scalar_one() == 0
