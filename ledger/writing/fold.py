"""Folding of a batch of records onto known attempts: new rows, and unmatched records.

Folding is idempotent by attempt id: a repeated open or settle adds nothing, so a journal may be
read again from any earlier place. A settle without its open record is returned as unmatched, for
quarantine. No I/O.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from ledger.accounts import counted_claim_pusd
from ledger.budgets.under_way import BookedChange, SplitHolds, merge_booked
from ledger.journals.records import AttemptOpened, AttemptSettled, CacheHit, Hold, HoldState, Record
from ledger.orm.books import LOST
from ledger.orm.budgets import BOOKED
from ledger.posting_rows import DatabaseRow
from ledger.writing.rows import (
    NewAttempt,
    RowBatch,
    add_lost,
    add_opened,
    add_settled,
    cache_hit_row,
    end_state,
    lost_values,
    refusal_row,
    settle_row,
    settled_values,
)


class JournalItem(msgspec.Struct, frozen=True):
    """One record of a journal, at `offset` of `segment`."""

    journal: str
    segment: int
    offset: int
    raw: bytes
    record: Record | None
    fault: str | None = None


class AttemptStage(StrEnum):
    OPEN = "open"
    LOST = LOST
    SETTLED = "settled"


@dataclass(slots=True)
class KnownAttempt:
    """An attempt in the database, or opened earlier in this batch with an unwritten `row`."""

    opened: AttemptOpened
    stage: AttemptStage
    holds: tuple[Hold, ...]
    row: NewAttempt | None = None
    booked: tuple[Hold, ...] = ()


@dataclass(slots=True)
class FoldResult:
    """Result of folding. `spent` is by (journal, budget, window), for the broker that lent it.

    `spent` may be negative. `claimed` is what claims take from the same windows, by (budget,
    window). `booked` is what was spent or is owed there without a loan, or counts on soft budgets.
    """

    rows: RowBatch
    unmatched: list[tuple[JournalItem, str]]
    spent: dict[tuple[str, str, int], int]
    claimed: dict[tuple[str, int], int] = field(default_factory=dict)
    booked: dict[tuple[str, int], BookedChange] = field(default_factory=dict)


def _as_opened(opened: AttemptOpened) -> SplitHolds:
    """Return all holds as lent: every budget was known when the attempt opened."""
    return SplitHolds(opened.holds)


def fold(
    items: Iterable[JournalItem],
    known: Mapping[str, KnownAttempt],
    split: Callable[[AttemptOpened], SplitHolds] = _as_opened,
) -> FoldResult:
    """Fold items. `known` holds every attempt that the items name and the database has.

    `split` tells which holds of a new attempt its broker lent, and which it owes in addition.
    """
    folded = FoldResult(RowBatch(), [], {})
    attempts = dict(known)
    for item in items:
        record = item.record
        if record is None:
            folded.unmatched.append((item, item.fault or "unreadable"))
        elif isinstance(record, AttemptOpened):
            if record.attempt_id not in attempts:
                attempts[record.attempt_id] = _open(folded, record, item.journal, split(record))
        elif isinstance(record, AttemptSettled):
            attempt = attempts.get(record.attempt_id)
            if attempt is None:
                folded.unmatched.append((item, "a settle without its open"))
            elif attempt.stage is not AttemptStage.SETTLED:
                _settle(folded, attempt, record, item.journal)
        elif isinstance(record, CacheHit):
            folded.rows.cache_hits.append(cache_hit_row(record))
        else:
            folded.rows.refusals.append(refusal_row(record))
    return folded


def fold_lost(lost: Iterable[tuple[str, KnownAttempt]], at_us: int) -> FoldResult:
    """Fold open attempts of journals without an owner: their bounds count until evidence."""
    folded = FoldResult(RowBatch(), [], {})
    for journal, attempt in lost:
        opened = attempt.opened
        values = lost_values(opened, at_us)
        folded.rows.settles.append(settle_row(opened.attempt_id, values))
        add_lost(folded.rows, opened, at_us)
        for hold in attempt.holds:
            amount = hold.amount_pusd or opened.bound_pusd  # a soft budget holds nothing
            _spend(folded, journal, hold, amount)
            folded.rows.hold_ends.append(
                _hold_end(opened.attempt_id, hold, HoldState.SUSPENSE, amount)
            )
        for hold in attempt.booked:
            folded.rows.hold_ends.append(
                _hold_end(opened.attempt_id, hold, BOOKED, hold.amount_pusd)
            )
            merge_booked(folded.booked, (hold,), BookedChange(hold.amount_pusd))
    return folded


def _open(
    folded: FoldResult, record: AttemptOpened, journal: str, holds: SplitHolds
) -> KnownAttempt:
    row = add_opened(folded.rows, record, journal, holds)
    merge_booked(folded.booked, holds.booked, BookedChange(granted_pusd=record.bound_pusd))
    return KnownAttempt(record, AttemptStage.OPEN, holds.held, row, holds.booked)


def _settle(
    folded: FoldResult, attempt: KnownAttempt, record: AttemptSettled, journal: str
) -> None:
    late = attempt.stage is AttemptStage.LOST
    values = settled_values(attempt.opened, record, late=late)
    add_settled(folded.rows, attempt.opened, record, late=late)
    state, cost = end_state(record), record.cost_pusd or 0
    if attempt.row is None:
        folded.rows.settles.append(settle_row(record.attempt_id, values))
        folded.rows.hold_ends += [
            _hold_end(record.attempt_id, hold, state, cost) for hold in attempt.holds
        ]
        folded.rows.hold_ends += [
            _hold_end(record.attempt_id, hold, BOOKED, cost) for hold in attempt.booked
        ]
    else:
        attempt.row.settle(values, state, cost)
    claimed = counted_claim_pusd(record)
    for hold in attempt.holds:
        counted = (hold.amount_pusd or attempt.opened.bound_pusd) if late else 0
        _spend(folded, journal, hold, cost - counted)
    for hold in attempt.booked:
        more = cost - hold.amount_pusd
        merge_booked(folded.booked, (hold,), BookedChange(more if late else cost, more))
    if claimed:
        for hold in (*attempt.holds, *attempt.booked):
            window = hold.scope, hold.window
            folded.claimed[window] = folded.claimed.get(window, 0) + claimed
    attempt.stage = AttemptStage.SETTLED


def _spend(folded: FoldResult, journal: str, hold: Hold, amount_pusd: int) -> None:
    """Spend from a hard budget's grant. A soft budget only counts the amount."""
    if not hold.amount_pusd:
        if amount_pusd:
            merge_booked(folded.booked, (hold,), BookedChange(counted_pusd=amount_pusd))
        return
    account = (journal, hold.scope, hold.window)
    folded.spent[account] = folded.spent.get(account, 0) + amount_pusd


def _hold_end(attempt_id: str, hold: Hold, state: str, actual_pusd: int) -> DatabaseRow:
    return {
        "of_attempt": attempt_id,
        "of_budget": hold.scope,
        "state": str(state),
        "actual_pusd": actual_pusd,
    }
