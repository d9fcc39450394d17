"""Client of the host's rate limit service, which widens shares of limits.

It connects over a Unix socket, and only where the host's share is used up and the limit is not.
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
    """A request for room for `tokens` on each of these accounts."""

    number: int
    tokens: int
    accounts: tuple[tuple[str, int | None, int | None], ...]  # name, requests, tokens a minute


class RateShareReply(msgspec.Struct, frozen=True, array_like=True):
    """The reply; `room`: there may be room now, so try again; None: unknown."""

    number: int
    room: bool | None


class RateServiceUnavailable(Exception):
    """The error where it is unknown whether other hosts leave room."""


ASKS: msgspec.msgpack.Decoder[RateShareRequest] = msgspec.msgpack.Decoder(RateShareRequest)
_TOLD: msgspec.msgpack.Decoder[RateShareReply] = msgspec.msgpack.Decoder(RateShareReply)


class RateShareClient:
    """The client of one worker; it connects when first needed, and again after a break."""

    def __init__(self, run_dir: Path) -> None:
        self._socket = run_dir / RATE_SOCKET
        self._asked: dict[int, asyncio.Future[bool | None]] = {}
        self._number = 0
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def request_share(self, accounts: Sequence[RateLimitAccount], tokens: int) -> bool:
        """Return whether to count again. Raises `RateServiceUnavailable`."""
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
        """Connect, and retry while the service is starting; it is restarted whenever it ends."""
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
