"""Batches at providers, from lines that were sent to lines that are answered.

    collecting -> ready -> uploading -> uploaded -> creating -> sent -> booking -> done
                     `---------------------------------`-> returning ------------^

One transaction opens an attempt, its holds and marks the line as out. One transaction settles it,
answers the line and ends the holds. In `uploading` and `creating`, something may have reached the
provider, so a runner that finds them checks there first. Every change of state checks the lease in
the same statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from ledger.batches.fairclaims import DONE, OUT, RUNNING, WAITING
from ledger.batches.lines import LineClaim
from ledger.budgets.batch_escrow import AT_PROVIDERS, BatchEscrow, held_amounts, release_grants
from ledger.budgets.grants import BudgetAccount, budgets
from ledger.database import read_row, read_rows, read_value, write_alone
from ledger.journals.reader import JournalOffset
from ledger.journals.records import AttemptOpened, AttemptSettled
from ledger.orm.batches import BatchLineRow, BatchRow, ProviderBatchRow, ProviderLineRow
from ledger.orm.books import AttemptRow
from ledger.prices.rates import WITHOUT_SOUND, ReachableMedia
from ledger.writing.fold import JournalItem
from ledger.writing.repository import JournalMove, LedgerRepository

READ = 50  # rows of one query for lines
_STANDING = JournalMove(AT_PROVIDERS, AT_PROVIDERS, JournalOffset(), JournalOffset())


class ProviderBatchState(StrEnum):
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
    """One batch at a provider. `why` is how it ended there."""

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

    @property
    def target(self) -> str:
        """Return the target that runs its lines."""
        return f"{self.provider}/{self.upstream_model}"


class LineTerms(msgspec.Struct, frozen=True):
    """The terms for a line's charge and comparison, frozen when it was sent.

    `most`: maximum output tokens of all choices, for the bound. `told`: the provider got that
    limit. `compared`: price versions. `allowance`: the part of `most` on top of the choices'
    limits. `thinks`: the model may produce hidden reasoning (true if unknown). `media`: kinds other
    than text that may be charged. `context`: the model's context in tokens, 0 if unknown.
    `ignored`: names not sent.
    """

    n: int
    most: int
    told: bool
    prompt_bound: int
    compared: tuple[int, ...] = ()
    allowance: int = 0
    thinks: bool = True
    media: ReachableMedia = WITHOUT_SOUND
    context: int = 0
    ignored: str = ""


@dataclass(frozen=True, slots=True)
class LeavingLine:
    """A claimed line with its plan. `scopes` are those that its attempt counts on."""

    claim: LineClaim
    opened: AttemptOpened
    scopes: tuple[str, ...]
    body: bytes
    terms: LineTerms


@dataclass(frozen=True, slots=True)
class AttemptOpening:
    """The opening of an attempt."""

    opened_us: int
    price_version: int | None
    bound_pusd: int
    team_id: str = ""


@dataclass(frozen=True, slots=True)
class OutLine:
    """One line as sent to the provider."""

    number: int
    attempt_id: str
    custom_id: str
    sent: int
    failures: int
    body: bytes
    terms: LineTerms


@dataclass(frozen=True, slots=True)
class LineEnd:
    """The end of a line at a provider. Without an `answer` it waits again until `next_us`.

    `kept`: no provider batch takes it again. `failed`: the try counts as a failure.
    """

    line: OutLine
    settled: AttemptSettled
    answer: bytes | None = None
    ok: bool = False
    kept: bool = False
    failed: bool = False
    next_us: int = 0


@dataclass(frozen=True, slots=True)
class LeavingResult:
    """The lines that were sent, and the `broke` ones that had no room in a budget."""

    gone: tuple[LeavingLine, ...] = ()
    broke: tuple[LeavingLine, ...] = ()


_COLUMNS = [getattr(ProviderBatchRow, name) for name in OutgoingRecord.__dataclass_fields__]
_LINE = [getattr(ProviderLineRow, name) for name in OutLine.__dataclass_fields__]


@dataclass(slots=True)
class OutgoingStore:
    """Provider batches in the database. Calls block: use a thread. `owner` is a runner's life."""

    engine: Engine
    owner: str
    _books: LedgerRepository = field(init=False)

    def __post_init__(self) -> None:
        self._books = LedgerRepository(self.engine, host=AT_PROVIDERS)

    def create(self, record: OutgoingRecord, *, until_us: int) -> None:
        values = {**asdict(record), "owner": self.owner, "lease_us": until_us}
        write_alone(self.engine, insert(ProviderBatchRow).values(**values))

    def send_lines(
        self, outgoing_id: str, leaving: Sequence[LeavingLine], *, at_us: int
    ) -> LeavingResult:
        """Mark claimed lines as out, with open attempts and holds, in one transaction."""
        if not leaving:
            return LeavingResult()
        lines = budgets(self.engine)
        with self.engine.begin() as connection:
            mine = [line for line in leaving if self._moves_out(connection, line.claim)]
            purse = BatchEscrow(connection, lines, at_us)
            purse.lock((line.scopes, line.opened.bound_pusd) for line in mine)
            gone: list[LeavingLine] = []
            broke: list[LeavingLine] = []
            for line in mine:
                holds = purse.hold(line.scopes, line.opened.bound_pusd)
                if holds is None:
                    broke.append(line)
                else:
                    opened = msgspec.structs.replace(line.opened, holds=holds)
                    gone.append(replace(line, opened=opened))
            for line in broke:
                self._line(connection, line.claim, OUT, state=RUNNING)
            purse.close()
            if gone:
                items = [
                    JournalItem(AT_PROVIDERS, 0, place, b"", line.opened)
                    for place, line in enumerate(gone)
                ]
                self._books.apply_within(connection, items, [_STANDING], at_us=at_us)
                self._add(connection, outgoing_id, gone)
        return LeavingResult(tuple(gone), tuple(broke))

    def unfinished(self) -> list[OutgoingRecord]:
        query = (
            select(*_COLUMNS)
            .where(ProviderBatchRow.state != ProviderBatchState.DONE)
            .order_by(ProviderBatchRow.id)
        )
        return [OutgoingRecord(*row) for row in read_rows(self.engine, query)]

    def find(self, outgoing_id: str) -> OutgoingRecord | None:
        query = select(*_COLUMNS).where(ProviderBatchRow.id == outgoing_id)
        row = read_row(self.engine, query)
        return None if row is None else OutgoingRecord(*row)

    def lease(self, outgoing_id: str, *, now_us: int, until_us: int) -> bool:
        """Take or renew the lease on the next step. Return `False` if another runner has it."""
        change = (
            update(ProviderBatchRow)
            .where(
                ProviderBatchRow.id == outgoing_id,
                (ProviderBatchRow.owner == self.owner) | (ProviderBatchRow.lease_us <= now_us),
            )
            .values(owner=self.owner, lease_us=until_us)
        )
        return write_alone(self.engine, change) == 1

    def take_over(self, seat: str) -> None:
        """Release what an earlier life of this seat (`SEAT/life`) held."""
        free = (
            update(ProviderBatchRow)
            .where(
                ProviderBatchRow.owner.startswith(f"{seat}/", autoescape=True),
                ProviderBatchRow.owner != self.owner,
            )
            .values(owner=None, lease_us=0)
        )
        write_alone(self.engine, free)

    def move(self, outgoing_id: str, since: ProviderBatchState, **values: Any) -> bool:
        """Change a batch that is in this state and held by this owner. Return whether it was."""
        change = (
            update(ProviderBatchRow)
            .where(
                ProviderBatchRow.id == outgoing_id,
                ProviderBatchRow.state == since,
                ProviderBatchRow.owner == self.owner,
            )
            .values(**values)
        )
        return write_alone(self.engine, change) == 1

    def lines(self, outgoing_id: str) -> Iterator[OutLine]:
        """Yield the lines with open attempts, in the order of the client's file."""
        last = 0
        while True:
            query = (
                select(*_LINE)
                .where(ProviderLineRow.outgoing_id == outgoing_id, ProviderLineRow.number > last)
                .order_by(ProviderLineRow.number)
                .limit(READ)
            )
            rows = read_rows(self.engine, query)
            for row in rows:
                last = row.number
                yield _line_of(row)
            if len(rows) < READ:
                return

    def count_lines(self, outgoing_id: str) -> int:
        query = select(func.count()).where(ProviderLineRow.outgoing_id == outgoing_id)
        return int(read_value(self.engine, query) or 0)

    def line(self, outgoing_id: str, number: int) -> OutLine | None:
        query = select(*_LINE).where(
            ProviderLineRow.outgoing_id == outgoing_id, ProviderLineRow.number == number
        )
        row = read_row(self.engine, query)
        return None if row is None else _line_of(row)

    def find_openings(self, attempts: Sequence[str]) -> dict[str, AttemptOpening]:
        """Return the openings of these attempts that the database has.

        Names come from the provider: PostgreSQL refuses to search for a NUL character.
        """
        columns = [getattr(AttemptRow, name) for name in AttemptOpening.__dataclass_fields__]
        query = select(AttemptRow.attempt_id, *columns).where(
            AttemptRow.attempt_id.in_([name for name in attempts if "\0" not in name])
        )
        return {row[0]: AttemptOpening(*row[1:]) for row in read_rows(self.engine, query)}

    def settle_lines(self, record: OutgoingRecord, ended: Sequence[LineEnd], *, at_us: int) -> int:
        """Settle attempts and answer their lines in one transaction. Return the number answered.

        Attempts that are settled already change nothing. A line held elsewhere by now is left.
        """
        with self.engine.begin() as connection:
            new = [end for end in ended if self._forget(connection, record.id, end.line)]
            names = [end.line.attempt_id for end in new]
            before = held_amounts(connection, names)
            items = [
                JournalItem(AT_PROVIDERS, 0, place, b"", end.settled)
                for place, end in enumerate(new)
            ]
            applied = self._books.apply_within(connection, items, [_STANDING], at_us=at_us)
            spent = {
                BudgetAccount(budget, window): pusd
                for (_, budget, window), pusd in applied.spent.items()
            }
            release_grants(connection, before, spent)
            return sum(self._answer(connection, record.batch_id, end) for end in new)

    def _answer(self, connection: Connection, batch_id: str, line_end: LineEnd) -> bool:
        """Store the line's end, if it is out under this try. Return whether it was answered."""
        values: dict[str, Any] = {"state": WAITING, "owner": None, "next_us": line_end.next_us}
        if line_end.answer is not None:
            values = {"state": DONE, "owner": None, "ok": line_end.ok, "answer": line_end.answer}
        else:
            values["kept"] = line_end.kept
            values["failures"] = line_end.line.failures + line_end.failed
        change = (
            update(BatchLineRow)
            .where(
                BatchLineRow.batch_id == batch_id,
                BatchLineRow.number == line_end.line.number,
                BatchLineRow.state == OUT,
                BatchLineRow.sent == line_end.line.sent,
            )
            .values(**values)
        )
        if connection.execute(change).rowcount != 1 or line_end.answer is None:
            return False
        counted = (
            {"completed": BatchRow.completed + 1}
            if line_end.ok
            else {"failed": BatchRow.failed + 1}
        )
        connection.execute(update(BatchRow).where(BatchRow.id == batch_id).values(**counted))
        return True

    def _forget(self, connection: Connection, outgoing_id: str, line: OutLine) -> bool:
        gone = delete(ProviderLineRow).where(
            ProviderLineRow.outgoing_id == outgoing_id, ProviderLineRow.number == line.number
        )
        return connection.execute(gone).rowcount == 1

    def _moves_out(self, connection: Connection, claim: LineClaim) -> bool:
        return self._line(connection, claim, RUNNING, state=OUT)

    def _line(self, connection: Connection, claim: LineClaim, since: str, **values: Any) -> bool:
        change = (
            update(BatchLineRow)
            .where(
                BatchLineRow.batch_id == claim.batch_id,
                BatchLineRow.number == claim.number,
                BatchLineRow.state == since,
                BatchLineRow.owner == self.owner,
                BatchLineRow.sent == claim.sent,
            )
            .values(**values)
        )
        return connection.execute(change).rowcount == 1

    def _add(self, connection: Connection, outgoing_id: str, gone: Sequence[LeavingLine]) -> None:
        rows = [
            {
                "outgoing_id": outgoing_id, "number": line.claim.number,
                "attempt_id": line.opened.attempt_id, "custom_id": line.claim.custom_id,
                "sent": line.claim.sent, "failures": line.claim.failures, "body": line.body,
                "terms": msgspec.to_builtins(line.terms),
            }
            for line in gone
        ]  # fmt: skip
        connection.execute(insert(ProviderLineRow), rows)
        counted = update(ProviderBatchRow).where(ProviderBatchRow.id == outgoing_id)
        size = sum(len(line.body) for line in gone)
        connection.execute(
            counted.values(
                lines=ProviderBatchRow.lines + len(rows), bytes=ProviderBatchRow.bytes + size
            )
        )


def _line_of(row: Any) -> OutLine:
    number, attempt_id, custom_id, sent, failures, body, terms = row
    frozen = msgspec.convert(terms, LineTerms)
    return OutLine(number, attempt_id, custom_id, sent, failures, body, frozen)
