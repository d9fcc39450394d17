"""A worker asks its host's rate desk for a larger part of limits, over a Unix socket.

It asks only where the host's part is used up and the limit is not; mostly nobody is asked.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.request.limits.rate_table import RateLimitAccount
from ledger.budgets.broker_protocol import frame, payloads
from ledger.unixsocket import short_path

RATE_SOCKET = "rates.sock"  # in the run directory
ANSWER_TIMEOUT_S = 2.0
RETRY_S = 0.05


class RateShareRequest(msgspec.Struct, frozen=True, array_like=True):
    """Room for one request of so many tokens on each of these."""

    number: int
    tokens: int
    accounts: tuple[tuple[str, int | None, int | None], ...]  # name, requests, tokens a minute


class RateShareReply(msgspec.Struct, frozen=True, array_like=True):
    """`room`: there may be room by now, try again; null: nobody can tell."""

    number: int
    room: bool | None


class RateServiceUnavailable(Exception):
    """Whether other hosts leave room cannot be told at this time."""


ASKS: msgspec.msgpack.Decoder[RateShareRequest] = msgspec.msgpack.Decoder(RateShareRequest)
_TOLD: msgspec.msgpack.Decoder[RateShareReply] = msgspec.msgpack.Decoder(RateShareReply)


class RateShareClient:
    """One a worker. The connection is made when it is first needed, and again when it broke."""

    def __init__(self, run_dir: Path) -> None:
        self._socket = run_dir / RATE_SOCKET
        self._asked: dict[int, asyncio.Future[bool | None]] = {}
        self._number = 0
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def request_share(self, accounts: Sequence[RateLimitAccount], tokens: int) -> bool:
        """Whether to try once more; raises `RateServiceUnavailable`."""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                room = await self._ask_service(accounts, tokens)
        except (OSError, TimeoutError) as error:
            raise RateServiceUnavailable from error
        if room is None:
            raise RateServiceUnavailable
        return room

    def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    async def _ask_service(self, accounts: Sequence[RateLimitAccount], tokens: int) -> bool | None:
        writer = await self._get_writer()
        self._number += 1
        number = self._number
        answer: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        named = tuple((account.name, *account.limits) for account in accounts)
        writer.write(frame(RateShareRequest(number, tokens, named)))
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    async def _get_writer(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None:
                reader, self._writer = await self._connect_service()
                self._listening = asyncio.create_task(self._listen(reader, self._writer))
            return self._writer

    async def _connect_service(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The desk may be on its way: it is started again whenever it ends."""
        while True:
            try:
                with short_path(self._socket) as path:
                    return await asyncio.open_unix_connection(path)
            except OSError:
                await asyncio.sleep(RETRY_S)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async for payload in payloads(reader):
                told = _TOLD.decode(payload)
                answer = self._asked.get(told.number)
                if answer is not None and not answer.done():
                    answer.set_result(told.room)
        finally:
            self._writer = None
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_result(None)
            with suppress(OSError):
                writer.close()
