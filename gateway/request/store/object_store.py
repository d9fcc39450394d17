"""Stored objects of a worker: encrypted, accessed in threads of their own, with timeouts.

On PostgreSQL they are tables of the ledger, so every host sees them once committed. With a SQLite
ledger they have a file of their own: what clients send must not wait for the ledger's only writer,
nor fill its file. Connections, threads and cipher are opened on first use.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError

from gateway.config.schema_store import StoreSection
from gateway.errors import RequestError
from gateway.request.store.stored_document import StoredDocument
from ledger import stored_objects as rows
from ledger.database import BUSY_TIMEOUT_MS, make_engine, sqlite_url
from ledger.identity.tokens import PEPPER_FILE
from ledger.orm.base import LedgerBase
from ledger.orm.stored import StoredBytesRow, StoredObjectRow
from ledger.stored_objects import (
    CANCELLED,
    ChainError,
    NameTaken,
    ObjectCancelled,
    ObjectQuery,
    SealedObject,
    StorageBounds,
)
from ledger.stored_progress import ObjectProgress, find_progress

FILE = "stored.sqlite3"
ID_CHARACTERS = 256
WAIT_S = 5.0
STORE_WAIT_S = 2.0  # a whole answer waits no longer for being stored
LOG_WAIT_MS = 250  # stores wait as long while the log is truncated
THREADS = {"sqlite": 2, "postgresql": 4}
AT_ONCE_BYTES = 64 * 1024 * 1024  # of the objects that one request continues
_DAY_US = 86_400 * 1_000_000
T = TypeVar("T")

log = logging.getLogger("breakeven.store")


class DocumentPage(NamedTuple):
    """A page of documents in order of creation, with their bytes; `more`: others follow."""

    documents: list[StoredDocument]
    more: bool
    size: int


class ObjectStore:
    """The stored objects of one worker."""

    def __init__(
        self, ledger_url: str, state_dir: Path, section: StoreSection, wall_us: Callable[[], int]
    ) -> None:
        self._ledger_url = ledger_url
        self._state_dir = state_dir
        self._section = section
        self._bounds = StorageBounds(section.team_bytes, section.total_bytes)
        self.wall_us = wall_us
        self._opening = Lock()

    @property
    def object_bytes(self) -> int:
        """Return the maximum size of one object in bytes."""
        return self._section.object_bytes

    @property
    def expires_us(self) -> int:
        """Return when an object stored now expires, in Unix microseconds."""
        return self.wall_us() + round(self._section.days * _DAY_US)

    async def store(
        self,
        documents: Sequence[StoredDocument],
        *,
        renews: str | None = None,
        replaces: bool = False,
        is_new: bool = False,
    ) -> str | None:
        """Store the objects of one team. Return the reason if they are not stored.

        `renews` names the object that they belong to, whose expiry is extended to theirs.
        `replaces`: the first one is stored already, unless it was deleted. `is_new`: a target chose
        their ids.
        """
        how = {"renews": renews, "replaces": replaces, "is_new": is_new}
        work = partial(self._store, documents, **how)
        try:
            return await self._in_thread(work, limit_s=STORE_WAIT_S)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            log.warning("an answer was not stored error=%s", type(error).__name__)
            return "unavailable"

    async def find(self, team_id: str, object_id: str) -> StoredDocument | None:
        """Return the object. Raises `RequestError` 503 while the database is unavailable."""
        if not _is_id(object_id):
            return None
        found = await self._call(rows.find_object, team_id, object_id, now_us=self.wall_us())
        return None if found is None else await self._reach(self._open, found)

    async def find_progress(self, team_id: str, object_id: str) -> ObjectProgress | None:
        """Return how the object stands; raises 503 as `find`."""
        return await self._call(find_progress, team_id, object_id, now_us=self.wall_us())

    async def find_many(self, team_id: str, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """Return the existing objects by id. Raises 503 as `find`.

        Raises `ChainError` if they are too large to be read at once.
        """
        names = [name for name in ids if _is_id(name)]
        most, now_us = AT_ONCE_BYTES, self.wall_us()
        found = await self._call(rows.find_objects, team_id, names, max_bytes=most, now_us=now_us)
        opened = await self._reach(self._open_all, list(found.values()))
        return {document.id: document for document in opened}

    async def find_chain(self, team_id: str, last: str, *, max_bytes: int) -> list[StoredDocument]:
        """Return an answer and everything that it continues, oldest first.

        Raises `ChainError` if one is missing, and 503 as `find`.
        """
        if not _is_id(last):
            raise ChainError(last)
        now_us = self.wall_us()
        found = await self._call(rows.find_chain, team_id, last, max_bytes=max_bytes, now_us=now_us)
        return await self._reach(self._open_all, found)

    async def check_items(self, team_id: str, parent: str) -> None:
        """Raise `ChainError` if a conversation is too large to be read, and 503 as `find`."""
        most, now_us = AT_ONCE_BYTES, self.wall_us()
        await self._call(rows.check_items, team_id, parent, max_bytes=most, now_us=now_us)

    async def list_page(self, query: ObjectQuery) -> DocumentPage | None:
        """Return one page; None if `after` does not exist. Raises 503 as `find`."""
        found = await self._call(rows.list_objects, query, now_us=self.wall_us())
        if found is None:
            return None
        documents = await self._reach(self._open_all, found.objects)
        return DocumentPage(documents, found.more, sum(stored.size for stored in found.objects))

    async def delete(self, team_id: str, object_id: str) -> bool:
        """Delete the object and its key; return whether it existed. Raises 503 as `find`."""
        was_there = await self._call(rows.delete_object, team_id, object_id)
        if was_there:
            await self._empty_log()
        return was_there

    async def cancel(self, team_id: str, object_id: str) -> bool:
        """Request the end of an unfinished object; False if it has ended. Raises 503 as `find`."""
        now_us = self.wall_us()
        return await self._call(rows.cancel_object, team_id, object_id, now_us=now_us)

    async def renew_leases(self, ids: Sequence[str], *, lease_us: int) -> set[str]:
        """Renew the objects' leases; return those to cancel. Raises 503 as `find`."""
        return await self._call(rows.renew_leases, ids, lease_us=lease_us)

    async def forget_expired(self) -> bool:
        """Delete some expired objects; return whether there may be more."""
        try:
            more = await self._call(rows.forget_objects, self.wall_us())
        except RequestError:
            return False
        if not more:
            await self._empty_log()
        return more

    async def _empty_log(self) -> None:
        """Truncate SQLite's log, which holds deleted keys until it is overwritten.

        If the file is in use all the time, the next pass over expired objects does it.
        """
        if self._ledger_url.startswith("sqlite"):
            with suppress(RequestError):
                await self._call(_truncate_log)

    async def seal_text(self, plain: bytes, owner: tuple[str, ...]) -> tuple[bytes, bytes]:
        """Encrypt a text that the client keeps; return its wrapped key and the text."""
        return await self._reach(lambda: tuple(self._cipher.seal(plain, owner)))

    async def open_text(
        self, wrapped_key: bytes, sealed: bytes, owner: tuple[str, ...]
    ) -> bytes | None:
        """Return the text that `seal_text` encrypted for this owner."""
        return await self._reach(lambda: self._decrypt(wrapped_key, sealed, owner))

    async def aclose(self) -> None:
        if "_threads" in self.__dict__:
            await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
            self._engine.dispose()

    def _connected(self) -> Engine:
        """Return the database's engine; the first thread that needs it opens it."""
        with self._opening:
            return self._engine

    @cached_property
    def _engine(self) -> Engine:
        if not self._ledger_url.startswith("sqlite"):
            return make_engine(self._ledger_url)
        path = self._state_dir / FILE
        path.touch(mode=0o600)
        engine = make_engine(sqlite_url(path), keep_open=True)
        event.listen(engine, "connect", _overwrite_deleted)
        tables = [StoredObjectRow.__table__, StoredBytesRow.__table__]
        with engine.begin() as connection:  # the first of several workers creates them
            LedgerBase.metadata.create_all(connection, tables=tables)
        return engine

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        kind = self._ledger_url.partition(":")[0].partition("+")[0]
        count = THREADS.get(kind, THREADS["postgresql"])
        return ThreadPoolExecutor(count, thread_name_prefix="stored")

    def _decrypt(self, wrapped_key: bytes, sealed: bytes, owner: tuple[str, ...]) -> bytes | None:
        from gateway.request.store.object_cipher import EncryptedText  # noqa: PLC0415  (a library for this alone)

        plain: bytes | None = self._cipher.open(EncryptedText(wrapped_key, sealed), owner)
        return plain

    @cached_property
    def _cipher(self) -> Any:
        from gateway.request.store.object_cipher import ObjectCipher  # noqa: PLC0415  (a library for this alone)

        return ObjectCipher((self._state_dir / PEPPER_FILE).read_bytes())

    async def _call(self, work: Callable[..., T], *given: Any, **named: Any) -> T:
        return await self._reach(lambda: work(self._connected(), *given, **named))

    async def _reach(self, work: Callable[..., T], *given: Any) -> T:
        try:
            return await self._in_thread(work, *given, limit_s=WAIT_S)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise RequestError(
                "unavailable",
                "The database of stored answers does not respond. Retry in 1 s.",
                retry_after_s=1.0,
            ) from error

    async def _in_thread(self, work: Callable[..., T], *given: Any, limit_s: float) -> T:
        job = self._threads.submit(partial(work, *given))
        async with asyncio.timeout(limit_s):
            return await asyncio.wrap_future(job)

    def _store(self, documents: Sequence[StoredDocument], **how: Any) -> str | None:
        """Store the documents; runs in a thread."""
        sealed = [self._seal(document) for document in documents]
        if sum(row.size for row in sealed) > self._section.object_bytes:
            return "too_large"
        engine = self._connected()
        try:
            is_stored = rows.store_objects(engine, sealed, self._bounds, **how)
        except NameTaken:
            return "taken"
        except ObjectCancelled:
            return CANCELLED
        return None if is_stored else "full"

    def _seal(self, document: StoredDocument) -> SealedObject:
        plain = msgspec.json.encode(document.content)
        wrapped_key, sealed = self._cipher.seal(plain, document.owner)
        return SealedObject(
            document.team_id, document.id, document.kind, document.parent, document.residency,
            document.status, wrapped_key, sealed, document.created_us, document.expires_us,
            document.lease_us, document.cancel_us,
        )  # fmt: skip

    def _open_all(self, found: Sequence[SealedObject]) -> list[StoredDocument]:
        return [document for row in found if (document := self._open(row)) is not None]

    def _open(self, row: SealedObject) -> StoredDocument | None:
        found = StoredDocument(
            team_id=row.team_id, id=row.id, kind=row.kind, content={}, parent=row.parent,
            residency=row.residency, status=row.status, created_us=row.created_us,
            expires_us=row.expires_us, lease_us=row.lease_us, cancel_us=row.cancel_us,
        )  # fmt: skip
        plain = self._decrypt(row.wrapped_key, row.sealed, found.owner)
        if plain is None:
            log.error("a stored object cannot be decrypted: its row or the pepper was changed")
            return None
        return found.with_content(msgspec.json.decode(plain))


def _is_id(name: str) -> bool:
    """Return whether an object can have this id; PostgreSQL text cannot contain NUL."""
    return "\0" not in name and len(name) <= ID_CHARACTERS


def _truncate_log(engine: Engine) -> None:
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={LOG_WAIT_MS}")
        try:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    finally:
        connection.close()


def _overwrite_deleted(connection: Any, _record: Any) -> None:
    """Make SQLite overwrite deleted content in the file."""
    connection.execute("PRAGMA secure_delete=ON")
