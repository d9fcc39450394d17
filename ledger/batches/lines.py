"""The lines of batches: each held by one runner at a time, each answered exactly once.

A runner claims lines under a lease that it renews. A claim counts the line's tries in the same
transaction, so that every try has its own number. An answer is stored only if its claim is still
held. Lines of a dead runner are claimed again when its lease has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select, update

from ledger.batches.fairclaims import (
    DONE,
    OUT,
    RUNNING,
    WAITING,
    ClaimFilter,
    claimed_columns,
    fair_rows,
    open_batch_conditions,
)
from ledger.database import read_rows, read_value, reading, write_alone
from ledger.orm.batches import BatchLineRow, BatchRow

READ = 50  # rows of one query for answers


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line to add. `number` is its line in the input file, from 1; `body` is JSON."""

    number: int
    custom_id: str
    model: str
    body: bytes


@dataclass(frozen=True, slots=True)
class LineClaim:
    """A line that this runner holds, for its `sent`-th try."""

    batch_id: str
    number: int
    custom_id: str
    model: str
    body: bytes
    sent: int
    failures: int
    endpoint: str
    key_id: str
    expires_us: int
    tags: str | None = None

    @property
    def request_id(self) -> str:
        return f"{self.batch_id}-{self.number}-{self.sent}"


class LineStore:
    """Batch lines in the database. Calls block: use a thread.

    `owner` identifies one life of a runner.
    """

    def __init__(self, engine: Engine, owner: str) -> None:
        self._engine = engine
        self._owner = owner

    def add(self, batch_id: str, lines: Sequence[NewLine], *, kept: bool = False) -> None:
        """Add lines. No provider batch takes `kept` lines."""
        rows = [
            {
                "batch_id": batch_id, "number": line.number, "custom_id": line.custom_id,
                "model": line.model, "body": line.body, "state": WAITING,
                "kept": kept,
            }
            for line in lines
        ]  # fmt: skip
        if rows:
            with self._engine.begin() as connection:
                connection.execute(insert(BatchLineRow), rows)

    def delete_lines(self, batch_id: str) -> None:
        write_alone(self._engine, delete(BatchLineRow).where(BatchLineRow.batch_id == batch_id))

    def models(self) -> list[str]:
        """Return the models of lines that are waiting or running, sorted."""
        query = (
            select(BatchLineRow.model).where(BatchLineRow.state.in_((WAITING, RUNNING))).distinct()
        )
        with reading(self._engine) as connection:
            return sorted(connection.execute(query).scalars())

    def claim(
        self, model: str, limit: int, *, now_us: int, until_us: int, ends_by_us: int | None = None
    ) -> list[LineClaim]:
        """Claim up to `limit` free lines of a model, each for its next try.

        Teams get equal numbers of running lines, as far as they have lines; a team's oldest lines
        come first. With `ends_by_us`, lines of later batches that a provider batch may take are
        left.
        """
        claims: list[LineClaim] = []
        with self._engine.begin() as connection:

            def claim_row(row: Any) -> None:
                taken = {"state": RUNNING, "owner": self._owner, "lease_us": until_us}
                change = _line(row.batch_id, row.number)
                connection.execute(change.values(**taken, sent=row.sent + 1))
                claims.append(_claim(row))

            wanted = ClaimFilter(model, now_us, ends_by_us)
            for row in fair_rows(connection, wanted, limit):
                claim_row(row)
            if len(claims) < limit:  # a separate query: each follows the index order
                for row in connection.execute(
                    _abandoned_lines(model, now_us, limit - len(claims))
                ).all():
                    claim_row(row)
        return claims

    def claim_onward(
        self, batch_id: str, model: str, limit: int, *, now_us: int, until_us: int
    ) -> list[LineClaim]:
        """Claim lines of one batch for a provider batch, from the end of the file."""
        query = (
            claimed_columns()
            .where(
                BatchLineRow.state == WAITING,
                BatchLineRow.model == model,
                BatchLineRow.batch_id == batch_id,
                BatchLineRow.next_us <= now_us,
                BatchLineRow.kept.is_(False),
                *open_batch_conditions(now_us),
            )
            .order_by(BatchLineRow.number.desc())
            .limit(limit)
            .with_for_update(skip_locked=True, of=BatchLineRow)
        )
        taken = {"state": RUNNING, "owner": self._owner, "lease_us": until_us}
        with self._engine.begin() as connection:
            rows = connection.execute(query).all()
            for row in rows:
                change = _line(row.batch_id, row.number)
                connection.execute(change.values(**taken, sent=row.sent + 1))
        return [_claim(row) for row in rows]

    def waiting_counts(self, model: str) -> dict[str, int]:
        """Return the number of waiting lines of a model by batch, including delayed ones."""
        query = (
            select(BatchLineRow.batch_id, func.count())
            .where(BatchLineRow.state == WAITING, BatchLineRow.model == model)
            .group_by(BatchLineRow.batch_id)
        )
        return {row[0]: row[1] for row in read_rows(self._engine, query)}

    def runners(self, model: str) -> int:
        """Return the number of runners that hold lines of a model."""
        query = select(func.count(BatchLineRow.owner.distinct())).where(
            BatchLineRow.state == RUNNING, BatchLineRow.model == model
        )
        return int(read_value(self._engine, query) or 0)

    def renew(self, claims: Sequence[LineClaim], *, until_us: int) -> list[LineClaim]:
        """Renew the leases. Return the claims that are lost to another runner."""
        with self._engine.begin() as connection:
            return [
                claim
                for claim in claims
                if connection.execute(self._mine(claim).values(lease_us=until_us)).rowcount != 1
            ]

    def answer(self, claim: LineClaim, line: bytes, *, ok: bool) -> bool:
        """Store a line's answer. Return `False` if the claim was lost, so another one counts."""
        done = self._mine(claim).values(state=DONE, ok=ok, answer=line, owner=None)
        counted = {"completed": BatchRow.completed + 1} if ok else {"failed": BatchRow.failed + 1}
        with self._engine.begin() as connection:
            if connection.execute(done).rowcount != 1:
                return False
            counting = update(BatchRow).where(BatchRow.id == claim.batch_id)
            connection.execute(counting.values(**counted))
            return True

    def put_back(
        self, claim: LineClaim, *, next_us: int = 0, failed: bool = False, kept: bool = False
    ) -> None:
        """Return a line to the queue until `next_us`.

        `failed` counts the try as a failure. No provider batch takes a `kept` line.
        """
        values: dict[str, Any] = {"state": WAITING, "owner": None, "next_us": next_us}
        if kept:
            values["kept"] = True
        if failed:
            values["failures"] = BatchLineRow.failures + 1
        write_alone(self._engine, self._mine(claim).values(**values))

    def release(self) -> None:
        """Release all lines that this owner holds."""
        left = update(BatchLineRow).where(
            BatchLineRow.state == RUNNING, BatchLineRow.owner == self._owner
        )
        write_alone(self._engine, left.values(state=WAITING, owner=None))

    def take_over(self, seat: str) -> None:
        """Release what an earlier life of this seat held. Owners are `SEAT/life`."""
        left = (
            update(BatchLineRow)
            .where(
                BatchLineRow.state == RUNNING,
                BatchLineRow.owner.startswith(f"{seat}/", autoescape=True),
                BatchLineRow.owner != self._owner,
            )
            .values(state=WAITING, owner=None)
        )
        leases = (
            update(BatchRow)
            .where(
                BatchRow.owner.startswith(f"{seat}/", autoescape=True),
                BatchRow.owner != self._owner,
            )
            .values(owner=None, lease_us=0)
        )
        with self._engine.begin() as connection:
            connection.execute(left)
            connection.execute(leases)

    # -- for the runner that writes the output files ------------------------------------------

    def running(self, batch_id: str, now_us: int) -> int:
        """Return the number of lines held by live runners."""
        query = select(func.count()).where(
            BatchLineRow.batch_id == batch_id,
            BatchLineRow.state == RUNNING,
            BatchLineRow.lease_us > now_us,
        )
        return int(read_value(self._engine, query) or 0)

    def out(self, batch_id: str) -> int:
        """Return the number of lines that are in provider batches."""
        query = select(func.count()).where(
            BatchLineRow.batch_id == batch_id, BatchLineRow.state == OUT
        )
        return int(read_value(self._engine, query) or 0)

    def undone(self, batch_id: str, limit: int) -> list[tuple[int, str]]:
        """Return (number, custom id) of lines without an answer."""
        query = (
            select(BatchLineRow.number, BatchLineRow.custom_id)
            .where(BatchLineRow.batch_id == batch_id, BatchLineRow.state != DONE)
            .order_by(BatchLineRow.number)
            .limit(limit)
        )
        return [(number, custom_id) for number, custom_id in read_rows(self._engine, query)]

    def close(self, batch_id: str, answers: Sequence[tuple[int, bytes]]) -> None:
        """End lines that will not be answered, each with its line of the error file."""
        with self._engine.begin() as connection:
            for number, line in answers:
                ending = _line(batch_id, number).where(BatchLineRow.state != DONE)
                values = {"state": DONE, "ok": False, "answer": line, "owner": None}
                if connection.execute(ending.values(**values)).rowcount == 1:
                    counting = update(BatchRow).where(BatchRow.id == batch_id)
                    more = func.coalesce(BatchRow.unanswered, 0) + 1
                    connection.execute(counting.values(failed=BatchRow.failed + 1, unanswered=more))

    def answers(self, batch_id: str, *, ok: bool) -> Iterator[bytes]:
        """Yield the lines of one output file, in input order."""
        last = 0
        while True:
            query = (
                select(BatchLineRow.number, BatchLineRow.answer)
                .where(
                    BatchLineRow.batch_id == batch_id,
                    BatchLineRow.ok.is_(ok),
                    BatchLineRow.number > last,
                )
                .order_by(BatchLineRow.number)
                .limit(READ)
            )
            rows = read_rows(self._engine, query)
            for number, answer in rows:
                assert answer is not None, "a line that is done has its answer"
                last = number
                yield answer
            if len(rows) < READ:
                return

    def _mine(self, claim: LineClaim) -> Any:
        return _line(claim.batch_id, claim.number).where(
            BatchLineRow.state == RUNNING,
            BatchLineRow.owner == self._owner,
            BatchLineRow.sent == claim.sent,
        )


def _abandoned_lines(model: str, now_us: int, limit: int) -> Any:
    """Select lines of open batches whose runner's lease has ended."""
    return (
        claimed_columns()
        .where(
            BatchLineRow.state == RUNNING,
            BatchLineRow.model == model,
            BatchLineRow.lease_us <= now_us,
            *open_batch_conditions(now_us),
        )
        .order_by(BatchLineRow.batch_id, BatchLineRow.number)
        .limit(limit)
        .with_for_update(skip_locked=True, of=BatchLineRow)
    )


def _line(batch_id: str, number: int) -> Any:
    return update(BatchLineRow).where(
        BatchLineRow.batch_id == batch_id, BatchLineRow.number == number
    )


def _claim(row: Any) -> LineClaim:
    return LineClaim(
        batch_id=row.batch_id,
        number=row.number,
        custom_id=row.custom_id,
        model=row.model,
        body=row.body,
        sent=row.sent + 1,
        failures=row.failures,
        endpoint=row.endpoint,
        key_id=row.key_id,
        expires_us=row.expires_us,
        tags=row.tags,
    )
