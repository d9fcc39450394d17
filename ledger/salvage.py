"""Recovery of records from damaged journals and the quarantine into the ledger.

Each attempt is one transaction. An attempt that is in the ledger already adds nothing, so recovery
may be repeated. No host's grant covers an attempt that the ledger did not know: its cost counts as
a grant of `NO_HOST`, as does spending from before a budget. Recovered records are logged with
author and time.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from sqlalchemy import Connection, Engine, select

from ledger.budgets.binding import BoundBudgets
from ledger.budgets.declaring import serialize_declarations
from ledger.budgets.grants import BudgetAccount, lock_balance, regrant
from ledger.database import in_groups, reading
from ledger.journals.homes import copies
from ledger.journals.records import AttemptOpened, AttemptSettled, CacheHit, Record
from ledger.journals.remains import read_remains, records_of_bytes
from ledger.manual_entries import ManualEntry, enter
from ledger.orm.books import AttemptRow, CacheHitRow, QuarantinedRecordRow, RefusalRow
from ledger.orm.budgets import NO_HOST
from ledger.seals.retire_hits import hits_retired_until_us
from ledger.seals.retirements import retired_until_us
from ledger.writing.fold import AttemptStage, JournalItem, KnownAttempt
from ledger.writing.repository import LedgerRepository
from ledger.writing.stored import known_attempts

SALVAGE = "salvage:"  # a subject of what is entered, before the journal's name
SALVAGED = "salvaged:"  # before a journal's name: whose rows the books did not have


class SalvageSource(msgspec.Struct):
    """The readable records of one segment, or of one journal's quarantined bytes.

    `new` records are not in the ledger. `known` counts records that are; `retired` those so old
    that their rows may have been deleted; `orphans` settles without an open record.
    """

    name: str
    journal: str
    new: list[Record] = []
    known: int = 0
    repaired: int = 0
    orphans: int = 0
    retired: int = 0
    lost_bytes: int = 0


class SalvageResult(msgspec.Struct, frozen=True):
    """Counts of what was applied: attempts added, attempts settled, refusals with cache hits."""

    attempts: int = 0
    settled: int = 0
    refusals: int = 0


def find_remains(engine: Engine, directory: Path) -> list[SalvageSource]:
    """Return the recoverable records by source. Writes nothing.

    Raises `OSError` if a copy cannot be read.
    """
    found = []
    for path in copies(directory):
        remains = read_remains(path)
        source = SalvageSource(str(path), remains.journal, lost_bytes=remains.lost_bytes)
        source.repaired = len(remains.repaired)
        found.append((source, [*remains.intact, *remains.repaired]))
    with reading(engine) as connection:
        found += _quarantined(connection)
        seen: set[str] = set()
        retired = retired_until_us(connection), hits_retired_until_us(connection)
        for source, records in found:
            _sort_records(connection, source, records, seen, retired)
    return [source for source, _ in found]


def apply_remains(
    engine: Engine,
    host: str,
    sources: Iterable[SalvageSource],
    *,
    by: str,
    at_us: int,
    note: str | None = None,
) -> SalvageResult:
    """Add the new records to the ledger. A repeated call adds nothing."""
    here = LedgerRepository(engine, host=host)
    nowhere = LedgerRepository(engine, host=NO_HOST)
    attempts = settled = refusals = 0
    for source in sources:
        if not source.new:
            continue
        for records in _by_attempt(source.new):
            with engine.begin() as connection:
                serialize_declarations(connection, shared=True)  # before any window is locked
                stored = _stored(connection, records)
                repository, journal = here, source.journal
                if stored is None and isinstance(records[0], AttemptOpened):
                    repository, journal = nowhere, SALVAGED + source.journal
                    _cover(connection, records)
                items = [
                    JournalItem(journal, 0, number, b"", record)
                    for number, record in enumerate(records)
                ]
                done = repository.apply_within(connection, items, (), at_us=at_us)
            attempts, settled = attempts + done.attempts, settled + done.settled
            refusals += sum(not isinstance(record, _OF_ATTEMPTS) for record in records)
        settled += nowhere.settle_lost(SALVAGED + source.journal, at_us=at_us).settled
        with engine.begin() as connection:
            says = {"source": source.name, "records": len(source.new)}
            subject = SALVAGE + source.journal
            enter(connection, ManualEntry(0, subject, says, at_us, at_us, by, note))
    return SalvageResult(attempts, settled, refusals)


_OF_ATTEMPTS = (AttemptOpened, AttemptSettled)


def _quarantined(connection: Connection) -> list[tuple[SalvageSource, list[Record]]]:
    table = QuarantinedRecordRow
    query = select(table.journal, table.segment, table.offset, table.record).order_by(table.seq)
    records: dict[str, list[Record]] = {}
    for journal, segment, offset, raw in connection.execute(query):
        records.setdefault(journal, []).extend(records_of_bytes(raw, journal, segment, offset))
    return [
        (SalvageSource(f"quarantine of {journal}", journal), whole)
        for journal, whole in records.items()
    ]


def _sort_records(
    connection: Connection,
    source: SalvageSource,
    records: list[Record],
    seen: set[str],
    retired: tuple[int, int],
) -> None:
    """Put records that the ledger lacks into `new`; `seen` holds the keys of records taken.

    `retired`: times before which attempts, and cache hits, may have been deleted.
    """
    ids = sorted({each.attempt_id for each in records if isinstance(each, _OF_ATTEMPTS)})
    stored = known_attempts(connection, ids)
    refused = _known_refusals(connection, records)
    opens = {each.attempt_id for each in records if isinstance(each, AttemptOpened)}
    for record in records:
        if not isinstance(record, _OF_ATTEMPTS):
            key, known = record.request_id, record.request_id in refused
            at_us = record.hit_us if isinstance(record, CacheHit) else record.refused_us
        else:
            key = f"{type(record).__name__}:{record.attempt_id}"
            at_us = record.opened_us if isinstance(record, AttemptOpened) else record.settled_us
            known = _is_known(record, stored)
            if isinstance(record, AttemptSettled) and record.attempt_id not in opens | {*stored}:
                source.orphans += 1
                continue
        if known or key in seen:
            source.known += 1
            continue
        seen.add(key)
        if at_us < retired[isinstance(record, CacheHit)]:
            source.retired += 1
        else:
            source.new.append(record)


def _is_known(record: Record, stored: Mapping[str, KnownAttempt]) -> bool:
    if not isinstance(record, _OF_ATTEMPTS):
        return False
    attempt = stored.get(record.attempt_id)
    if attempt is None:
        return False
    return isinstance(record, AttemptOpened) or attempt.stage is AttemptStage.SETTLED


def _known_refusals(connection: Connection, records: list[Record]) -> set[str]:
    ids = [each.request_id for each in records if not isinstance(each, _OF_ATTEMPTS)]
    found: set[str] = set()
    for some in in_groups(ids):
        for table in (RefusalRow, CacheHitRow):
            query = select(table.request_id).where(table.request_id.in_(some))
            found |= set(connection.execute(query).scalars())
    return found


def _by_attempt(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield open and settle of an attempt together, in that order, and other records alone."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        key = record.attempt_id if isinstance(record, _OF_ATTEMPTS) else record.request_id
        groups.setdefault(key, []).append(record)
    for group in groups.values():
        yield sorted(group, key=lambda record: isinstance(record, AttemptSettled))


def _stored(connection: Connection, records: list[Record]) -> str | None:
    """Return the attempt's id if it is in the ledger."""
    first = records[0]
    if not isinstance(first, _OF_ATTEMPTS):
        return None
    query = select(AttemptRow.attempt_id).where(AttemptRow.attempt_id == first.attempt_id)
    return connection.execute(query).scalar_one_or_none()


def _cover(connection: Connection, records: list[Record]) -> None:
    """Grant the cost of an unknown attempt to `NO_HOST` on each of its hard budgets."""
    opened = records[0]
    assert isinstance(opened, AttemptOpened)
    settles = [record for record in records if isinstance(record, AttemptSettled)]
    budgets = BoundBudgets(connection, [hold.scope for hold in opened.holds])
    holds = sorted(
        opened.holds, key=lambda hold: BudgetAccount(hold.scope, hold.window).lock_order()
    )
    for hold in holds:
        bound = budgets.of(hold.scope)
        if bound is None or not bound.hard:
            continue
        if opened.bound_pusd and not hold.amount_pusd:
            continue  # it was only counted then: the books cover it themselves
        at_bound = hold.amount_pusd or opened.bound_pusd
        cost = (settles[0].cost_pusd or 0) if settles else at_bound
        account = BudgetAccount(hold.scope, hold.window)
        before = lock_balance(connection, NO_HOST, account)
        regrant(connection, NO_HOST, account, before, cost)
