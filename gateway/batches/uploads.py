"""One upload: a form read as it comes, its file written chunk by chunk, at most one chunk held."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.requests import ClientDisconnect

from gateway.batches.multipart import Event, Field, FileBegins, FileData, Form, FormError
from gateway.batches.stored import Stored
from gateway.errors import RequestError
from ledger.files import CHUNK_BYTES, FileRecord

PURPOSE = "batch"
NAME_LIMIT = 255  # characters
LIFE_S = (3600, 30 * 86_400)  # what OpenAI allows in `expires_after`
GRACE_S = 30.0  # of waiting for a client, beside what its bytes take at the least rate
RATE_BYTES = 64 * 1024  # a second
DRAINED_BYTES = 1024**3  # of a body that is too large: who still sends does not read
DRAINED_S = 10.0


class Upload:
    """Takes one request's form; `receive` returns the file once it is whole and visible."""

    def __init__(
        self,
        stored: Stored,
        record: FileRecord,
        *,
        limit_bytes: int,
        team_limit_bytes: int,
        patience_s: float,
    ) -> None:
        """`record` is the file as it will be if the form says nothing else."""
        self._stored = stored
        self._record = record
        self._limit = limit_bytes
        self._team_limit = team_limit_bytes
        self._patience_s = patience_s
        self._fields: dict[str, str] = {}
        self._begun = False
        self._held = bytearray()
        self._number = 0
        self._size = 0
        self._arrived = 0
        self._waited_s = 0.0

    async def receive(self, boundary: bytes, body: AsyncIterator[bytes]) -> FileRecord:
        """Raises `RequestError`; then nothing of the file is left."""
        try:
            await self._read(Form(boundary), body)
            return await self._finished()
        except BaseException:
            if self._begun:  # also when the client hung up and this task is being cancelled
                await asyncio.shield(self._stored.call(self._stored.files.drop, self._record.id))
            raise

    async def _read(self, form: Form, body: AsyncIterator[bytes]) -> None:
        try:
            while not form.ended:
                data = await self._next(body)
                if not data:
                    raise _bad("The form ends before its last boundary.")
                for event in form.feed(data):
                    await self._take(event, body)
        except FormError as error:
            raise _bad(f"The form cannot be read: {error}.") from error
        except TimeoutError as error:
            raise RequestError("slow_client", "The file did not arrive in time.") from error
        except ClientDisconnect as error:
            raise _bad("The client hung up before its file was complete.") from error

    async def _next(self, body: AsyncIterator[bytes]) -> bytes:
        """What comes next; raises `TimeoutError` when the client is silent, or slow in all.

        Only waiting for it counts: that the database is slow is not its fault.
        """
        left_s = GRACE_S + self._arrived / RATE_BYTES - self._waited_s
        began_s = asyncio.get_running_loop().time()
        async with asyncio.timeout(max(0.0, min(self._patience_s, left_s))):
            data = await anext(body, b"")
        self._waited_s += asyncio.get_running_loop().time() - began_s
        self._arrived += len(data)
        return data

    async def _take(self, event: Event, body: AsyncIterator[bytes]) -> None:
        if isinstance(event, Field):
            self._fields[event.name] = event.value
        elif isinstance(event, FileBegins):
            if event.name != "file" or self._begun:
                raise _bad("The form must hold one file, called `file`.", "file")
            name = "".join(c for c in event.filename if c.isprintable())[:NAME_LIMIT]
            self._record = replace(self._record, filename=name or "file")
            await self._stored.call(self._stored.files.begin, self._record)
            self._begun = True
        elif isinstance(event, FileData):
            self._held += event.data
            self._size += len(event.data)
            if self._size > self._limit:
                await _drained(body)
                raise too_large(self._limit)
            while len(self._held) >= CHUNK_BYTES:
                if not await self._write(CHUNK_BYTES):
                    await _drained(body)
                    raise no_room(self._team_limit)

    async def _write(self, size: int) -> bool:
        """Whether the team had room for it."""
        chunk = bytes(self._held[:size])
        written = await self._stored.call(
            self._stored.files.append, self._record.id, self._number, chunk,
            team_limit_bytes=self._team_limit,
        )  # fmt: skip
        if not written:
            return False
        del self._held[:size]
        self._number += 1
        return True

    async def _finished(self) -> FileRecord:
        if not self._begun:
            raise _bad("`file` is required.", "file")
        if not self._size:
            raise _bad("The file is empty.", "file")
        purpose = self._fields.get("purpose")
        if purpose != PURPOSE:
            message = f"`purpose` must be `{PURPOSE}`: files are kept for batches only."
            raise _bad(message, "purpose")
        if self._held and not await self._write(len(self._held)):
            raise no_room(self._team_limit)
        record = replace(
            self._record, bytes=self._size, expires_us=self._expires_us(), status="processed"
        )
        if not await self._stored.call(self._stored.files.finish, record):
            raise _bad("The file took longer to arrive than unfinished files are kept.", "file")
        return record

    def _expires_us(self) -> int:
        anchor = self._fields.get("expires_after[anchor]")
        seconds = self._fields.get("expires_after[seconds]")
        if anchor is None and seconds is None:
            return self._record.expires_us
        if anchor != "created_at" or not (seconds or "").isdecimal():
            raise _bad("`expires_after` needs `anchor: created_at` and `seconds`.", "expires_after")
        if not LIFE_S[0] <= int(seconds or 0) <= LIFE_S[1]:
            message = f"`expires_after[seconds]` must be between {LIFE_S[0]} and {LIFE_S[1]}."
            raise _bad(message, "expires_after")
        return self._record.created_us + int(seconds or 0) * 1_000_000


def too_large(limit: int) -> RequestError:
    return RequestError("too_large", f"The file is larger than {limit} bytes.", param="file")


def no_room(limit: int) -> RequestError:
    message = f"The team may keep {limit} bytes in files, and this is more: delete some files."
    return RequestError("too_large", message, param="file")


async def _drained(body: AsyncIterator[bytes]) -> None:
    left = DRAINED_BYTES
    try:
        async with asyncio.timeout(DRAINED_S):
            while left > 0 and (data := await anext(body, b"")):
                left -= len(data)
    except (TimeoutError, ClientDisconnect):
        return


def _bad(message: str, param: str | None = None) -> RequestError:
    return RequestError("bad_request", message, param=param)
