"""Messages between workers and the budget broker over a Unix socket.

A frame is a length and msgpack. A worker sends `LoanRequest`, `LoanReturn` and, after every
connection, `ClientHello` with its slices, so that a restarted broker knows what is lent. The broker
sends `Loan` or `LoanRefusal`, `LoanRecall` and `BudgetUpdate`.
"""

import asyncio
import struct
from collections.abc import AsyncIterator

import msgspec

FRAME_LIMIT_BYTES = 4 * 1024 * 1024
_LENGTH = struct.Struct("<I")

AccountKey = tuple[str, int]  # budget id, window start


class BudgetTerms(msgspec.Struct, frozen=True, array_like=True):
    """The terms of a budget in force."""

    id: str
    scope: str
    period: str
    timezone: str
    hard: bool
    limit_pusd: str  # decimal text: limits may exceed 64 bits


class AccountAmount(msgspec.Struct, frozen=True, array_like=True):
    """Money on one account. Decimal text, because sums may exceed 64 bits."""

    budget_id: str
    window: int
    text: str

    @property
    def key(self) -> AccountKey:
        return self.budget_id, self.window

    @property
    def pusd(self) -> int:
        return int(self.text)


def amount(key: AccountKey, pusd: int) -> AccountAmount:
    return AccountAmount(*key, str(pusd))


class ClientHello(msgspec.Struct, frozen=True, tag="hello"):
    """First message of a worker: its name, its journal, and everything lent to it so far."""

    worker: str
    journal: str
    granted: tuple[AccountAmount, ...] = ()


class LoanRequest(msgspec.Struct, frozen=True, tag="borrow"):
    """Request for all of `asks` or nothing. `returns` is free money given back at once.

    `team` is the team of the request that needs the money.
    """

    number: int
    asks: tuple[AccountAmount, ...]
    hold_pusd: int  # one attempt's, so 64 bits are enough
    returns: tuple[AccountAmount, ...] = ()
    team: str = ""


class LoanReturn(msgspec.Struct, frozen=True, tag="return"):
    """Free money given back. `recall` is the number of the recall that it answers, if any."""

    returns: tuple[AccountAmount, ...]
    recall: int | None = None


class Loan(msgspec.Struct, frozen=True, tag="lent"):
    """Money lent to a worker.

    If a hold on an account in `small` ends, the worker returns the rest at once for others.
    """

    number: int
    loans: tuple[AccountAmount, ...]
    small: tuple[AccountKey, ...] = ()


class LoanRefusal(msgspec.Struct, frozen=True, tag="refused"):
    """Refusal of a loan. `away`: the broker could not find out whether there is room.

    `unspent_pusd` is the limit minus spending and claims; holds are not subtracted.
    """

    number: int
    budget_id: str
    limit_pusd: str
    room_pusd: str
    away: bool = False
    unspent_pusd: str = "0"


class LoanRecall(msgspec.Struct, frozen=True, tag="recall"):
    number: int
    accounts: tuple[AccountKey, ...]


class BudgetUpdate(msgspec.Struct, frozen=True, tag="news"):
    """New spending and budgets, for all workers.

    `spent` is by account of the current windows, open claims included. `lines` is sent only after a
    change of budgets.
    """

    spent: tuple[tuple[str, int, str], ...] = ()
    lines: tuple[BudgetTerms, ...] | None = None


Request = ClientHello | LoanRequest | LoanReturn
Answer = Loan | LoanRefusal | LoanRecall | BudgetUpdate
_ENCODER = msgspec.msgpack.Encoder()
REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def frame(message: msgspec.Struct) -> bytes:
    payload = _ENCODER.encode(message)
    return _LENGTH.pack(len(payload)) + payload


async def payloads(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield frames until the other side disconnects or sends a frame above the limit."""
    while True:
        try:
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            if length > FRAME_LIMIT_BYTES:
                return
            yield await reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
