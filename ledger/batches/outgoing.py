"""What is out at providers as their batches: from lines that were given away to lines answered.

    collecting -> ready -> uploading -> uploaded -> creating -> sent -> booking -> done
                     `---------------------------------`-> returning ------------^

Opening an attempt, its holds and the line's going out are one transaction; so are its settle, the
line's answer and the holds' end. `uploading` and `creating` say that something may have reached
the provider; whoever finds them looks there first. Every change of state asks for the lease in the
same statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, delete, insert, select, update

from ledger.batches.fairclaims import DONE, OUT, RUNNING, WAITING
from ledger.batches.lines import Claim
from ledger.budgets.grants import Account, budgets
from ledger.budgets.outholds import AT_PROVIDERS, Purse, give_back, held
from ledger.database import read_row, read_rows, write_alone
from ledger.journals.reader import Position
from ledger.journals.records import AttemptOpened, AttemptSettled
from ledger.orm.batches import Batch, BatchLine, Outgoing, OutgoingLine
from ledger.orm.books import Attempt
from ledger.writing.fold import Item
from ledger.writing.repository import Move, Repository

READ = 50  # rows of one look at lines
_STANDING = Move(AT_PROVIDERS, AT_PROVIDERS, Position(), Position())


class State(StrEnum):
    COLLECTING = "collecting"
    READY = "ready"
    UPLOADING = "uploading"
    UPLOADED = "uploaded"
    CREATING = "creating"
    SENT = "sent"
    BOOKING = "booking"
    RETURNING = "returning"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """One batch at a provider; `why` says how it ended there."""

    id: str
    batch_id: str
    provider: str
    upstream_model: str
    endpoint: str
    state: str
    created_us: int
    next_us: int = 0
    tries: int = 0
    lines: int = 0
    bytes: int = 0
    marked_us: int | None = None
    cancel_us: int | None = None
    input_file_id: str | None = None
    remote_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    why: str | None = None


class Terms(msgspec.Struct, frozen=True):
    """What a line's charge is judged and compared by, frozen when it went out.

    `most`: output tokens of all choices that its bound is made of; `told`: whether the provider
    was told that limit; `compared`: price versions.
    """

    n: int
    most: int
    told: bool
    prompt_bound: int
    compared: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaving:
    """A claimed line with what was planned for it; `scopes` are what its attempt counts on."""

    claim: Claim
    opened: AttemptOpened
    scopes: tuple[str, ...]
    body: bytes
    terms: Terms


@dataclass(frozen=True, slots=True)
class Opening:
    """Of an attempt that is open."""

    opened_us: int
    price_version: int | None
    bound_pusd: int


@dataclass(frozen=True, slots=True)
class OutLine:
    """One line as the provider has it."""

    number: int
    attempt_id: str
    custom_id: str
    sent: int
    failures: int
    body: bytes
    terms: Terms


@dataclass(frozen=True, slots=True)
class Ended:
    """How a line ended there. Without an `answer` it waits again, from `next_us` on.

    `kept`: it goes to no provider's batch again; `failed` counts the try against it.
    """

    line: OutLine
    settled: AttemptSettled
    answer: bytes | None = None
    ok: bool = False
    kept: bool = False
    failed: bool = False
    next_us: int = 0


@dataclass(frozen=True, slots=True)
class Left:
    """What became of lines that were to leave: `broke` ones found no room in a budget."""

    gone: tuple[Leaving, ...] = ()
    broke: tuple[Leaving, ...] = ()


_COLUMNS = [getattr(Outgoing, name) for name in OutgoingRecord.__dataclass_fields__]
_LINE = [getattr(OutgoingLine, name) for name in OutLine.__dataclass_fields__]


@dataclass(slots=True)
class OutgoingStore:
    """Blocks while the database answers: call it from a thread. `owner` names a runner's life."""

    engine: Engine
    owner: str
    _books: Repository = field(init=False)

    def __post_init__(self) -> None:
        self._books = Repository(self.engine, host=AT_PROVIDERS)

    def begin(self, record: OutgoingRecord, *, until_us: int) -> None:
        values = {**asdict(record), "owner": self.owner, "lease_us": until_us}
        write_alone(self.engine, insert(Outgoing).values(**values))

    def leave(self, outgoing_id: str, leaving: Sequence[Leaving], *, at_us: int) -> Left:
        """Claimed lines go out: their attempts are open and held, in one transaction."""
        if not leaving:
            return Left()
        lines = budgets(self.engine)
        with self.engine.begin() as connection:
            mine = [one for one in leaving if self._moves_out(connection, one.claim)]
            purse = Purse(connection, lines, at_us)
            purse.lock(scope for one in mine for scope in one.scopes)
            gone: list[Leaving] = []
            broke: list[Leaving] = []
            for one in mine:
                holds = purse.hold(one.scopes, one.opened.bound_pusd)
                if holds is None:
                    broke.append(one)
                else:
                    opened = msgspec.structs.replace(one.opened, holds=holds)
                    gone.append(replace(one, opened=opened))
            for one in broke:
                self._line(connection, one.claim, OUT, state=RUNNING)
            purse.close()
            if gone:
                items = [
                    Item(AT_PROVIDERS, 0, place, b"", one.opened) for place, one in enumerate(gone)
                ]
                self._books.apply_within(connection, items, [_STANDING], at_us=at_us)
                self._add(connection, outgoing_id, gone)
        return Left(tuple(gone), tuple(broke))

    def unfinished(self) -> list[OutgoingRecord]:
        query = select(*_COLUMNS).where(Outgoing.state != State.DONE).order_by(Outgoing.id)
        return [OutgoingRecord(*row) for row in read_rows(self.engine, query)]

    def find(self, outgoing_id: str) -> OutgoingRecord | None:
        query = select(*_COLUMNS).where(Outgoing.id == outgoing_id)
        row = read_row(self.engine, query)
        return None if row is None else OutgoingRecord(*row)

    def take(self, outgoing_id: str, *, now_us: int, until_us: int) -> bool:
        """The lease on its next step, or its renewal; False while another has it."""
        change = (
            update(Outgoing)
            .where(
                Outgoing.id == outgoing_id,
                (Outgoing.owner == self.owner) | (Outgoing.lease_us <= now_us),
            )
            .values(owner=self.owner, lease_us=until_us)
        )
        return write_alone(self.engine, change) == 1

    def take_over(self, seat: str) -> None:
        """What an earlier life of this seat (`SEAT/life`) had in hand is free at once."""
        free = (
            update(Outgoing)
            .where(
                Outgoing.owner.startswith(f"{seat}/", autoescape=True),
                Outgoing.owner != self.owner,
            )
            .values(owner=None, lease_us=0)
        )
        write_alone(self.engine, free)

    def move(self, outgoing_id: str, since: State, **values: Any) -> bool:
        """Change one that is in this state and in this owner's hands."""
        change = (
            update(Outgoing)
            .where(
                Outgoing.id == outgoing_id,
                Outgoing.state == since,
                Outgoing.owner == self.owner,
            )
            .values(**values)
        )
        return write_alone(self.engine, change) == 1

    def lines(self, outgoing_id: str) -> Iterator[OutLine]:
        """Those whose attempts are open, in the order of the client's file."""
        last = 0
        while True:
            query = (
                select(*_LINE)
                .where(OutgoingLine.outgoing_id == outgoing_id, OutgoingLine.number > last)
                .order_by(OutgoingLine.number)
                .limit(READ)
            )
            rows = read_rows(self.engine, query)
            for row in rows:
                last = row.number
                yield _line_of(row)
            if len(rows) < READ:
                return

    def line(self, outgoing_id: str, number: int) -> OutLine | None:
        query = select(*_LINE).where(
            OutgoingLine.outgoing_id == outgoing_id, OutgoingLine.number == number
        )
        row = read_row(self.engine, query)
        return None if row is None else _line_of(row)

    def opened(self, attempts: Sequence[str]) -> dict[str, Opening]:
        """What the books say of these attempts since they were opened."""
        columns = [getattr(Attempt, name) for name in Opening.__dataclass_fields__]
        query = select(Attempt.attempt_id, *columns).where(Attempt.attempt_id.in_(list(attempts)))
        return {row[0]: Opening(*row[1:]) for row in read_rows(self.engine, query)}

    def book(self, record: OutgoingRecord, ended: Sequence[Ended], *, at_us: int) -> int:
        """Settle attempts and answer their lines, all at once; how many lines were answered.

        What was booked before changes nothing, and a line that is in other hands by now is left.
        """
        with self.engine.begin() as connection:
            new = [one for one in ended if self._forget(connection, record.id, one.line)]
            names = [one.line.attempt_id for one in new]
            before = held(connection, names)
            items = [
                Item(AT_PROVIDERS, 0, place, b"", one.settled) for place, one in enumerate(new)
            ]
            applied = self._books.apply_within(connection, items, [_STANDING], at_us=at_us)
            spent = {
                Account(budget, window): pusd for (_, budget, window), pusd in applied.spent.items()
            }
            give_back(connection, before, spent)
            return sum(self._answer(connection, record.batch_id, one) for one in new)

    def _answer(self, connection: Connection, batch_id: str, one: Ended) -> bool:
        """Whether the line was answered: it must be out under this very try."""
        values: dict[str, Any] = {"state": WAITING, "owner": None, "next_us": one.next_us}
        if one.answer is not None:
            values = {"state": DONE, "owner": None, "ok": one.ok, "answer": one.answer}
        else:
            values["kept"] = one.kept
            values["failures"] = one.line.failures + one.failed
        change = (
            update(BatchLine)
            .where(
                BatchLine.batch_id == batch_id,
                BatchLine.number == one.line.number,
                BatchLine.state == OUT,
                BatchLine.sent == one.line.sent,
            )
            .values(**values)
        )
        if connection.execute(change).rowcount != 1 or one.answer is None:
            return False
        counted = {"completed": Batch.completed + 1} if one.ok else {"failed": Batch.failed + 1}
        connection.execute(update(Batch).where(Batch.id == batch_id).values(**counted))
        return True

    def _forget(self, connection: Connection, outgoing_id: str, line: OutLine) -> bool:
        gone = delete(OutgoingLine).where(
            OutgoingLine.outgoing_id == outgoing_id, OutgoingLine.number == line.number
        )
        return connection.execute(gone).rowcount == 1

    def _moves_out(self, connection: Connection, claim: Claim) -> bool:
        return self._line(connection, claim, RUNNING, state=OUT)

    def _line(self, connection: Connection, claim: Claim, since: str, **values: Any) -> bool:
        change = (
            update(BatchLine)
            .where(
                BatchLine.batch_id == claim.batch_id,
                BatchLine.number == claim.number,
                BatchLine.state == since,
                BatchLine.owner == self.owner,
                BatchLine.sent == claim.sent,
            )
            .values(**values)
        )
        return connection.execute(change).rowcount == 1

    def _add(self, connection: Connection, outgoing_id: str, gone: Sequence[Leaving]) -> None:
        rows = [
            {
                "outgoing_id": outgoing_id, "number": one.claim.number,
                "attempt_id": one.opened.attempt_id, "custom_id": one.claim.custom_id,
                "sent": one.claim.sent, "failures": one.claim.failures, "body": one.body,
                "terms": msgspec.to_builtins(one.terms),
            }
            for one in gone
        ]  # fmt: skip
        connection.execute(insert(OutgoingLine), rows)
        counted = update(Outgoing).where(Outgoing.id == outgoing_id)
        size = sum(len(one.body) for one in gone)
        connection.execute(
            counted.values(lines=Outgoing.lines + len(rows), bytes=Outgoing.bytes + size)
        )


def _line_of(row: Any) -> OutLine:
    number, attempt_id, custom_id, sent, failures, body, terms = row
    frozen = msgspec.convert(terms, Terms)
    return OutLine(number, attempt_id, custom_id, sent, failures, body, frozen)
