"""Upload of a file: a form parsed as it arrives and written in chunks, one in memory.

With an `Idempotency-Key`, equal forms give the same file, whatever their boundary. A repeated
upload is only compared and not written, so it needs no storage.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec
from starlette.requests import ClientDisconnect

from gateway.batches.batch_database import BatchDatabase
from gateway.batches.body_pace import BodyPace
from gateway.batches.multipart import (
    Event,
    FileBegins,
    FileData,
    FormError,
    FormTextField,
    MultipartParser,
)
from gateway.errors import RequestError
from gateway.request.idempotency.idempotency_store import reused_key_error
from ledger.batches.files import CHUNK_BYTES, FileRecord, SweptError
from ledger.idempotency import IdempotencyRecord

PURPOSE = "batch"
NAME_LIMIT = 255  # characters
LIFE_S = (3600, 30 * 86_400)  # OpenAI's range of `expires_after`
SECONDS_DIGITS = 18  # Python's `int` raises for thousands of digits
DRAINED_BYTES = 1024**3  # read of a too large body, because many clients read only after sending
DRAINED_S = 10.0


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Limits of one file, of a team's files, and of the wait for the next bytes."""

    file_bytes: int
    team_bytes: int
    patience_s: float


@dataclass(frozen=True, slots=True)
class UploadIdempotency:
    """Idempotency key of an upload; `first` is the earlier claim of the key, if any."""

    name: str
    until_us: int
    first: IdempotencyRecord | None


class Upload:
    """Receiver of one upload; `receive` returns the file once it is complete and visible."""

    def __init__(
        self,
        stored: BatchDatabase,
        record: FileRecord,
        bounds: UploadLimits,
        once: UploadIdempotency | None = None,
    ) -> None:
        """`record` holds the file's defaults, which fields of the form may change."""
        self._stored = stored
        self._record = record
        self._bounds = bounds
        self._once = once
        self._is_written = once is None or once.first is None
        self._content = None if once is None else sha256()
        self._fields: dict[str, str] = {}
        self._begun = False
        self._held = bytearray()
        self._number = 0
        self._size = 0
        self._pace = BodyPace(bounds.patience_s)

    async def receive(self, boundary: bytes, body: AsyncIterator[bytes]) -> FileRecord:
        """Return the file, or the earlier file of the idempotency key.

        Raises `RequestError`, after removing what was written.
        """
        try:
            await self._read(MultipartParser(boundary), body)
            return await self._finish_upload()
        except BaseException:
            if self._begun:  # also if this task is cancelled by a disconnect
                await asyncio.shield(self._drop_file())
            raise

    async def _read(self, form: MultipartParser, body: AsyncIterator[bytes]) -> None:
        try:
            while not form.ended:
                data = await self._pace.read_piece(body)
                if not data:
                    raise _bad("The form ends before its last boundary. Send it again, complete.")
                for event in form.feed(data):
                    await self._handle_event(event, body)
        except FormError as error:
            raise _bad(f"The form cannot be read: {error}.") from error
        except TimeoutError as error:
            raise RequestError(
                "slow_client", "The file did not arrive in time. Send it faster, or split it."
            ) from error
        except ClientDisconnect as error:
            raise _bad("The client disconnected before its file was complete.") from error

    async def _handle_event(self, event: Event, body: AsyncIterator[bytes]) -> None:
        if isinstance(event, FormTextField):
            self._fields[event.name] = event.value
        elif isinstance(event, FileBegins):
            if event.name != "file" or self._begun:
                raise _bad("The form must have exactly one file, in the field `file`.", "file")
            name = "".join(c for c in event.filename if c.isprintable())[:NAME_LIMIT]
            self._record = replace(self._record, filename=name or "file")
            if self._is_written:
                await self._stored.call(self._stored.files.create, self._record)
            self._begun = True
        elif isinstance(event, FileData):
            self._held += event.data
            self._size += len(event.data)
            if self._content is not None:
                self._content.update(event.data)
            if self._size > self._bounds.file_bytes:
                await _drain_body(body)
                raise too_large(self._bounds.file_bytes)
            while len(self._held) >= CHUNK_BYTES:
                if not await self._write(CHUNK_BYTES):
                    await _drain_body(body)
                    raise storage_full(self._bounds.team_bytes)

    async def _write(self, size: int) -> bool:
        """Write a chunk; return whether the team had room for it."""
        if self._is_written:
            chunk = bytes(self._held[:size])
            try:
                written = await self._stored.call(
                    self._stored.files.append, self._record.id, self._number, chunk,
                    team_limit_bytes=self._bounds.team_bytes,
                )  # fmt: skip
            except SweptError as error:
                raise _swept_error() from error
            if not written:
                return False
        del self._held[:size]
        self._number += 1
        return True

    async def _finish_upload(self) -> FileRecord:
        if not self._begun:
            raise _bad("`file` is required.", "file")
        if not self._size:
            raise _bad("The file is empty.", "file")
        purpose = self._fields.get("purpose")
        if purpose != PURPOSE:
            message = f"`purpose` must be `{PURPOSE}`: files are kept for batches only."
            raise _bad(message, "purpose")
        if self._held and not await self._write(len(self._held)):
            raise storage_full(self._bounds.team_bytes)
        record = replace(
            self._record, bytes=self._size, expires_us=self._expires_us(), status="processed"
        )
        if self._once is not None:
            return await self._meant(record, self._once)
        if not await self._stored.call(self._stored.files.finish, record):
            raise _swept_error()
        return record

    async def _meant(self, record: FileRecord, once: UploadIdempotency) -> FileRecord:
        """Return the file of the idempotency key: this one, or an equal earlier one."""
        asking, first = (
            IdempotencyRecord(record.key_id, once.name, self._digest(), record.id),
            once.first,
        )
        if first is None:
            finish = self._stored.files.finish_once
            first = await self._stored.call(finish, record, asking, until_us=once.until_us)
            if first is None:
                raise _swept_error()
            if first.request_id == record.id:
                return record
            await self._drop_file()  # a concurrent upload with the same key was first
        if first.digest != asking.digest:
            raise reused_key_error(f"`{first.request_id}`")
        earlier = await self._stored.call(self._stored.files.find, first.request_id, record.team_id)
        if earlier is None:
            raise _deleted_error(first.request_id)
        return earlier

    def _digest(self) -> bytes:
        """Return a digest of the form's content, independent of field order and boundary."""
        assert self._content is not None
        said = msgspec.json.encode([self._record.filename, sorted(self._fields.items())])
        return sha256(b"/v1/files\0" + said + b"\0" + self._content.digest()).digest()

    async def _drop_file(self) -> None:
        if self._is_written:
            await self._stored.call(self._stored.files.drop, self._record.id)

    def _expires_us(self) -> int:
        anchor = self._fields.get("expires_after[anchor]")
        seconds = self._fields.get("expires_after[seconds]")
        if anchor is None and seconds is None:
            return self._record.expires_us
        if anchor != "created_at" or not (seconds or "").isdecimal():
            raise _bad("`expires_after` needs `anchor: created_at` and `seconds`.", "expires_after")
        life_s = int((seconds or "")[:SECONDS_DIGITS])
        if not LIFE_S[0] <= life_s <= LIFE_S[1]:
            message = f"`expires_after[seconds]` must be between {LIFE_S[0]} and {LIFE_S[1]}."
            raise _bad(message, "expires_after")
        return self._record.created_us + life_s * 1_000_000


def too_large(limit: int) -> RequestError:
    return RequestError("too_large", f"The file is larger than {limit} bytes.", param="file")


def storage_full(limit: int) -> RequestError:
    message = f"The team may keep {limit} bytes in files, and this is more: delete some files."
    return RequestError("too_large", message, param="file")


def _swept_error() -> RequestError:
    return _bad("The file took longer to arrive than unfinished files are kept.", "file")


def _deleted_error(file_id: str) -> RequestError:
    return RequestError(
        "duplicate_request",
        f"This `Idempotency-Key` stands for the file `{file_id}`, which is there no more. Send a "
        "new key to upload it once more.",
        param="Idempotency-Key",
        retry=False,
    )


async def _drain_body(body: AsyncIterator[bytes]) -> None:
    left = DRAINED_BYTES
    try:
        async with asyncio.timeout(DRAINED_S):
            while left > 0 and (data := await anext(body, b"")):
                left -= len(data)
    except (TimeoutError, ClientDisconnect):
        return


def _bad(message: str, param: str | None = None) -> RequestError:
    return RequestError("bad_request", message, param=param)
