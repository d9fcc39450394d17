"""All writes to the ledger, in transactions that apply wholly or not at all.

`apply` moves journal offsets in the transaction that writes the records, so each is applied exactly
once, whenever the process dies. Opens are assumed to be new until the database refutes it, because
a journal is rarely read twice. A rejected record is found by bisection (`ledger.writing.bisect`)
and quarantined alone. An unavailable database raises `DatabaseUnavailable`: the caller keeps its
position and retries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, Engine, delete, select
from sqlalchemy.exc import DBAPIError, StatementError

from ledger.budgets.escrow import account_order
from ledger.budgets.under_way import BookedChange, BudgetsInForce, apply_booked
from ledger.database import is_momentary, is_unavailable, reading
from ledger.fleet.hours import correct_hours
from ledger.journals.findings import JournalFinding
from ledger.journals.reader import JournalOffset
from ledger.journals.records import AttemptOpened, AttemptSettled, Record
from ledger.orm import tables as orm
from ledger.writing.bisect import BatchBisector, RecordsRejected, TransientDbError
from ledger.writing.findings import finding_row, untold_part
from ledger.writing.fold import FoldResult, JournalItem, fold, fold_lost
from ledger.writing.rows import UNSETTLED, RowBatch
from ledger.writing.statements import WriterStatements
from ledger.writing.stored import known_attempts

IMPORT_BATCH = 4000
LOST_BATCH = 1000
ENDED = -1  # sequence of a fully applied journal, which may be deleted
# Errors caused by a record: values out of range, broken constraints, unbalanced postings.
_VALUES = (ValueError, OverflowError, TypeError)
_POISON = (StatementError, *_VALUES)


class DatabaseUnavailable(Exception):
    """The database could not be reached, or did not accept the statement at this time."""


@dataclass(frozen=True, slots=True)
class JournalMove:
    """A journal's position before and after a batch, and the findings between them."""

    journal: str
    worker: str
    since: JournalOffset
    after: JournalOffset
    findings: tuple[JournalFinding, ...] = ()


@dataclass(slots=True)
class ApplyResult:
    """Result of one transaction. `spent` is by (journal, budget, window).

    `claimed` is what claims take from the same windows, by (budget, window), and `booked` what was
    spent or is owed there without a loan.
    """

    attempts: int = 0
    settled: int = 0
    quarantined: int = 0
    spent: dict[tuple[str, str, int], int] = field(default_factory=dict)
    claimed: dict[tuple[str, int], int] = field(default_factory=dict)
    booked: dict[tuple[str, int], BookedChange] = field(default_factory=dict)


class LedgerRepository:
    """The writing side of the ledger for one host."""

    def __init__(self, engine: Engine, *, host: str) -> None:
        self._engine = engine
        self._host = host
        self._statements = WriterStatements(engine.dialect)
        self._apart = BatchBisector()
        self._budgets = BudgetsInForce()
        self._began: dict[str, str] = {}  # by journal: the host that began it

    def positions(self) -> dict[str, JournalOffset]:
        """Return the applied position of each journal of this host."""
        table = orm.JournalPositionRow
        columns = (table.journal, table.segment, table.offset, table.sequence)
        query = select(*columns).where(table.host == self._host)
        with translate_db_errors(), reading(self._engine) as connection:
            return {name: JournalOffset(*place) for name, *place in connection.execute(query)}

    def apply(
        self, items: Sequence[JournalItem], moves: Sequence[JournalMove], *, at_us: int
    ) -> ApplyResult:
        """Write the items and the journal positions after them in one transaction."""
        applied = self._apply_whole(items, moves, at_us) if self._apart.is_whole(items) else None
        if applied is None:
            applied = self._apply_parts(items, moves, at_us)
        self._apart.forget_items(items)
        return applied

    def apply_within(
        self,
        connection: Connection,
        items: Sequence[JournalItem],
        moves: Sequence[JournalMove],
        *,
        at_us: int,
    ) -> ApplyResult:
        """Apply items inside a transaction of the caller, together with its other changes.

        The records are of no journal: `moves` names what stands for one. No time is recorded,
        because they say nothing about a writer.
        """
        applied = self._apply_batch(connection, items, at_us, opens=True)
        self._add_spent(connection, applied)
        self._move(connection, moves, 0)
        return applied

    def import_records(self, records: Iterable[Record], *, journal: str, at_us: int) -> ApplyResult:
        """Import records that were never in a journal, in batches. Repeating adds nothing."""
        total = ApplyResult()
        batch: list[JournalItem] = []
        for number, record in enumerate(records):
            batch.append(JournalItem(journal, 0, number, b"", record))
            if len(batch) == IMPORT_BATCH:
                _add(total, self.apply(batch, (), at_us=at_us))
                batch = []
        if batch:
            _add(total, self.apply(batch, (), at_us=at_us))
        return total

    def settle_lost(self, journal: str, *, at_us: int) -> ApplyResult:
        """Move open attempts of a journal without an owner to suspense."""
        table = orm.AttemptRow
        total = ApplyResult()
        while True:
            with translate_db_errors(), self._engine.begin() as connection:
                self._budgets.refresh(connection)
                query = (
                    select(table.attempt_id)
                    .where(table.journal == journal, table.settled_us.is_(None))
                    .limit(LOST_BATCH)
                )
                ids = list(connection.execute(query).scalars())
                known = known_attempts(connection, ids)
                folded = fold_lost(((journal, attempt) for attempt in known.values()), at_us)
                self._write(connection, folded.rows)
                lost = ApplyResult(0, len(ids), 0, folded.spent, booked=folded.booked)
                self._add_spent(connection, lost)
                _add(total, lost)
            if len(ids) < LOST_BATCH:
                return total

    def end_journal(self, move: JournalMove, *, at_us: int) -> None:
        """Record that a journal is fully applied, before its files are deleted."""
        ended = replace(move, after=replace(move.after, sequence=ENDED))
        with translate_db_errors(), self._engine.begin() as connection:
            self._move(connection, [ended], at_us)

    def forget_journal(self, journal: str) -> None:
        """Delete the position of a journal whose files are deleted."""
        table = orm.JournalPositionRow
        self._began.pop(journal, None)
        with translate_db_errors(), self._engine.begin() as connection:
            connection.execute(delete(table).where(table.journal == journal))

    def _apply_batch(
        self, connection: Connection, items: Sequence[JournalItem], at_us: int, *, opens: bool
    ) -> ApplyResult:
        """Apply a batch. Unless `opens`, an open that is stored already fails the batch."""
        self._budgets.refresh(connection)
        known = known_attempts(connection, _attempts_to_find(items, opens=opens))
        folded = fold(items, known, self._budgets.split)
        self._write(connection, folded.rows)
        correct_hours(connection, folded.rows.own, at_us=at_us)
        self._quarantine(connection, folded.unmatched, at_us)
        return _summary(folded)

    def _apply_whole(
        self, items: Sequence[JournalItem], moves: Sequence[JournalMove], at_us: int
    ) -> ApplyResult | None:
        """Apply all items at once, with opens assumed new. Return `None` if that failed."""
        rest, aside = self._apart.split_known(items)
        try:
            with translate_record_errors(), self._engine.begin() as connection:
                applied = self._apply_batch(connection, rest, at_us, opens=False)
                self._end(connection, applied, aside, moves, at_us)
        except TransientDbError:
            self._apart.record_failure(items)
        except RecordsRejected:
            pass
        else:
            return applied
        return None

    def _apply_parts(
        self, items: Sequence[JournalItem], moves: Sequence[JournalMove], at_us: int
    ) -> ApplyResult:
        """Apply items in parts, and quarantine those that the database rejects alone."""
        with translate_db_errors(), self._engine.begin() as connection:
            applied = ApplyResult()

            def apply(some: Sequence[JournalItem]) -> None:
                with translate_record_errors(), connection.begin_nested():
                    found = self._apply_batch(connection, some, at_us, opens=True)
                _add(applied, found)

            self._apart.apply_parts(self._apart.split_known(items)[0], apply)
            self._end(connection, applied, self._apart.split_known(items)[1], moves, at_us)
        return applied

    def _end(
        self,
        connection: Connection,
        applied: ApplyResult,
        aside: Sequence[tuple[JournalItem, str]],
        moves: Sequence[JournalMove],
        at_us: int,
    ) -> None:
        """Write what a transaction writes once, however many parts it has."""
        self._quarantine(connection, aside, at_us)
        applied.quarantined += len(aside)
        self._add_spent(connection, applied)
        self._move(connection, moves, at_us)

    def _write(self, connection: Connection, rows: RowBatch) -> None:
        say = self._statements
        say.attempts.run(connection, rows.attempt_values())
        say.decisions.run(connection, rows.decisions)
        say.postings.run(connection, rows.postings)
        say.compared.run(connection, rows.compared)
        say.legs.run(connection, rows.legs)
        say.claims.run(connection, rows.claims)
        say.holds.run(connection, rows.hold_values())
        say.refusals.run(connection, rows.refusals)
        say.cache_hits.run(connection, rows.cache_hits)
        say.settles.run(connection, rows.settles)
        say.hold_ends.run(connection, rows.hold_ends)

    def _add_spent(self, connection: Connection, applied: ApplyResult) -> None:
        """Add the spend to totals, read under row locks in a fixed order to avoid deadlocks.

        This runs once per transaction, because parts would each lock in their own order.
        """
        say, windows, grants = self._statements, [], []
        spent: dict[tuple[str, int], dict[str, int]] = {}
        for (journal, budget_id, start), amount in applied.spent.items():
            hosts, host = (
                spent.setdefault((budget_id, start), {}),
                self._host_of(connection, journal),
            )
            hosts[host] = hosts.get(host, 0) + amount
        for account in applied.booked:
            spent.setdefault(account, {})
        for budget_id, start in sorted(spent, key=lambda window: account_order(*window)):
            hosts = spent[budget_id, start]
            here = {"of_budget": budget_id, "of_window": start}
            found = say.spent.find(connection, dict(here))
            if found is None:
                zeros = {"spent_pusd": 0, "granted_pusd": 0, "limit_pusd": None, "claimed_pusd": 0,
                         "team_id": None}  # fmt: skip
                say.windows.run(connection, [{"budget_id": budget_id, "window": start, **zeros}])
                found = say.spent.find(connection, dict(here))
                assert found is not None
            claimed = int(found[1]) + applied.claimed.get((budget_id, start), 0)
            booked = applied.booked.get((budget_id, start), BookedChange())
            if booked.granted_pusd or booked.spent_pusd:
                apply_booked(connection, budget_id, start, booked)
            beside = booked.spent_pusd + booked.counted_pusd
            spent_now = int(found[0]) + sum(hosts.values()) + beside
            windows.append({**here, "spent_pusd": spent_now, "claimed_pusd": claimed})
            for host, amount in sorted(hosts.items()):
                of_host = {**here, "of_host": host}
                granted = say.granted.find(connection, dict(of_host))
                if granted is not None:
                    grants.append({**of_host, "spent_pusd": int(granted[0]) + amount})
        say.spend.run(connection, windows)
        say.spend_grant.run(connection, grants)

    def _host_of(self, connection: Connection, journal: str) -> str:
        """Return the host from whose grant the holds were taken: its name may have changed."""
        if journal not in self._began:
            table = orm.JournalPositionRow
            query = select(table.host).where(table.journal == journal)
            self._began[journal] = connection.execute(query).scalar_one_or_none() or self._host
        return self._began[journal]

    def _quarantine(
        self, connection: Connection, found: Sequence[tuple[JournalItem, str]], at_us: int
    ) -> None:
        rows = [
            {
                "journal": item.journal,
                "segment": item.segment,
                "offset": item.offset,
                "at_us": at_us,
                "reason": reason.replace("\0", "\\0"),
                "record": item.raw,
            }
            for item, reason in found
        ]
        self._statements.quarantined.run(connection, rows)

    def _move(self, connection: Connection, moves: Sequence[JournalMove], at_us: int) -> None:
        rows = [
            {
                "journal": move.journal,
                "worker": move.worker,
                "host": self._host,
                "segment": move.after.segment,
                "offset": move.after.offset,
                "applied_us": at_us,
                "sequence": move.after.sequence,
            }
            for move in moves
        ]
        told = [untold_part(connection, each) for move in moves for each in move.findings]
        found = [finding_row(each, self._host, at_us) for each in told if each is not None]
        self._statements.findings.run(connection, found)
        self._statements.positions.run(connection, rows)


def _attempts_to_find(items: Iterable[JournalItem], *, opens: bool) -> list[str]:
    """Return the attempts to look up: all with `opens`, else those settled before an open."""
    first: set[str] = set()
    found: set[str] = set()
    for item in items:
        record = item.record
        if isinstance(record, AttemptSettled):
            if opens or record.attempt_id not in first:
                found.add(record.attempt_id)
        elif isinstance(record, AttemptOpened):
            (found if opens else first).add(record.attempt_id)
    return sorted(found)


def _summary(folded: FoldResult) -> ApplyResult:
    rows = folded.rows
    settled = len(rows.settles) + sum(attempt.settled is not UNSETTLED for attempt in rows.attempts)
    unmatched = len(folded.unmatched)
    return ApplyResult(
        len(rows.attempts), settled, unmatched, folded.spent, folded.claimed, folded.booked
    )


def _add(total: ApplyResult, more: ApplyResult) -> None:
    total.attempts += more.attempts
    total.settled += more.settled
    total.quarantined += more.quarantined
    for account, amount in more.spent.items():
        total.spent[account] = total.spent.get(account, 0) + amount
    for window, amount in more.claimed.items():
        total.claimed[window] = total.claimed.get(window, 0) + amount
    for window, change in more.booked.items():
        total.booked[window] = total.booked.get(window, BookedChange()).add(change)


def _raise_if_unavailable(error: BaseException) -> None:
    if isinstance(error, DBAPIError) and is_unavailable(error):
        raise DatabaseUnavailable(str(error.orig)) from error


class translate_db_errors:  # noqa: N801  (reads as the guard it is in a `with`)
    """A context that turns an unavailable database into `DatabaseUnavailable`.

    Other errors pass unchanged.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, TransientDbError):  # of a record by itself, again and again
            raise DatabaseUnavailable(str(error)) from error
        if error is not None:
            _raise_if_unavailable(error)


class translate_record_errors:  # noqa: N801  (as above)
    """A context that turns failures caused by records into errors of `ledger.writing.bisect`.

    Other errors pass: a statement that is wrong for every record is a bug and rejects no record.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, _POISON):
            return
        if isinstance(error, DBAPIError) and is_momentary(error):
            raise TransientDbError(str(error.orig)) from error
        _raise_if_unavailable(error)
        ours = None if isinstance(error, DBAPIError) else getattr(error, "orig", None)
        if ours is None or isinstance(ours, _VALUES):
            raise RecordsRejected(f"{type(error).__name__}: {error}"[:500]) from error
