"""Messages between workers and the budget desk over a Unix socket.

Frames are a length and msgpack. A worker asks (`LoanRequest`), returns (`LoanReturn`) and, after
every
connection, states its slices (`ClientHello`), so that a desk that restarted knows what is lent.
The desk
answers (`Loan` or `LoanRefusal`), calls money back (`LoanRecall`) and tells budgets and spending
(`BudgetUpdate`).
"""

import asyncio
import struct
from collections.abc import AsyncIterator

import msgspec

FRAME_LIMIT_BYTES = 4 * 1024 * 1024
_LENGTH = struct.Struct("<I")

AccountKey = tuple[str, int]  # budget id, window start


class BudgetTerms(msgspec.Struct, frozen=True, array_like=True):
    """A budget in force."""

    id: str
    scope: str
    period: str
    timezone: str
    hard: bool
    limit_pusd: str  # decimal text: limits may exceed 64 bits


class AccountAmount(msgspec.Struct, frozen=True, array_like=True):
    """Money on one account; decimal text, because sums may exceed 64 bits."""

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
    """First message of a worker: its name, its journal, and all that was ever lent to it."""

    worker: str
    journal: str
    granted: tuple[AccountAmount, ...] = ()


class LoanRequest(msgspec.Struct, frozen=True, tag="borrow"):
    """All of `asks` or none; `returns` is free money given back in the same breath.

    `team`: whose request it is.
    """

    number: int
    asks: tuple[AccountAmount, ...]
    hold_pusd: int  # one attempt's, so 64 bits are enough
    returns: tuple[AccountAmount, ...] = ()
    team: str = ""


class LoanReturn(msgspec.Struct, frozen=True, tag="return"):
    """Free money given back; `recall` is the number of the call it answers, if any."""

    returns: tuple[AccountAmount, ...]
    recall: int | None = None


class Loan(msgspec.Struct, frozen=True, tag="lent"):
    """`small`: give the rest back at once when a hold ends, others may need it."""

    number: int
    loans: tuple[AccountAmount, ...]
    small: tuple[AccountKey, ...] = ()


class LoanRefusal(msgspec.Struct, frozen=True, tag="refused"):
    """Refusal of a loan; `away`: the desk could not tell whether there is room.

    `unspent_pusd`: what the limit leaves beside spending and claims, holds not counted.
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
    """`spent` is by account of this moment's windows, open claims included.

    `lines` is told only when budgets changed.
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
    """Frames until the other side is gone; a frame beyond the limit ends it too."""
    while True:
        try:
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            if length > FRAME_LIMIT_BYTES:
                return
            yield await reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
