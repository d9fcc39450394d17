"""Conversion of records to rows: what an open, a settle or a loss changes in each table.

A settled attempt is one row, its postings, the end of its holds, and its comparators' costs. A lost
attempt (its worker died) is booked at its bound and flagged `lost` until evidence arrives. A late
settle then corrects it by further postings, flagged `late`. No I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import astuple

from ledger.accounts import (
    counted_claim_pusd,
    postings_for_attempt,
    postings_for_suspense,
    surplus_pusd,
)
from ledger.budgets.under_way import SplitHolds
from ledger.journals.records import (
    TOKEN_COLUMNS,
    AttemptOpened,
    AttemptSettled,
    CacheHit,
    Hold,
    HoldState,
    RequestRefused,
)
from ledger.orm.books import LOST
from ledger.orm.budgets import BOOKED
from ledger.posting_rows import DatabaseRow, Values, posting_values

UNKNOWN_TIER = "unknown_tier"
DISPUTED = "disputed"
OVER_BOUND = "over_bound"
PARTLY_READ = "partly_read"
PARTLY_PRICED = "partly_priced"
UNSEEN = "unseen"


class NewAttempt(msgspec.Struct):
    """An attempt that this batch opens: its columns known before the answer, and after it."""

    attempt_id: str
    opened: Values
    holds: tuple[Hold, ...]
    settled: Values
    state: str = HoldState.HELD.value  # of its holds
    actual_pusd: int | None = None
    booked: tuple[Hold, ...] = ()  # on budgets that were declared while it was under way

    def settle(self, settled: Values, state: HoldState, actual_pusd: int) -> None:
        """Settle the attempt in the batch that opened it, before its row is written."""
        self.settled, self.state, self.actual_pusd = settled, state.value, actual_pusd


@dataclass(slots=True)
class RowBatch:
    """The rows that one part of a transaction writes.

    Inserted rows are values in the order of their table's columns. `own` has the pools and times of
    settled engine time, whose hours may be closed already.
    """

    attempts: list[NewAttempt] = field(default_factory=list)
    settles: list[DatabaseRow] = field(default_factory=list)
    decisions: list[Values] = field(default_factory=list)
    compared: list[Values] = field(default_factory=list)
    legs: list[Values] = field(default_factory=list)
    claims: list[Values] = field(default_factory=list)
    postings: list[Values] = field(default_factory=list)
    hold_ends: list[DatabaseRow] = field(default_factory=list)
    refusals: list[DatabaseRow] = field(default_factory=list)
    cache_hits: list[DatabaseRow] = field(default_factory=list)
    own: set[tuple[str, int]] = field(default_factory=set)

    def attempt_values(self) -> list[Values]:
        return [attempt.opened + attempt.settled for attempt in self.attempts]

    def hold_values(self) -> list[Values]:
        return [
            (
                attempt.attempt_id,
                hold.scope,
                hold.window,
                hold.amount_pusd,
                state,
                attempt.actual_pusd,
            )
            for attempt in self.attempts
            for holds, state in ((attempt.holds, attempt.state), (attempt.booked, BOOKED))
            for hold in holds
        ]


def opened_values(record: AttemptOpened, journal: str) -> Values:
    """Return the values known before the answer: those of `OPENED`."""
    return (*_storable(_opened_of(record)), _tags_of(record.tags), journal)


def settled_values(opened: AttemptOpened, settled: AttemptSettled, *, late: bool) -> Values:
    """Return the values that the answer adds: those of `SETTLED`."""
    first = settled.compared[0] if settled.compared else None
    return (
        settled.settled_us,
        settled.status,
        settled.http_status,
        *_storable(_ended_of(settled)),
        _flag(opened, settled, late=late),
        *_storable((settled.tier,)),
        first.comparator if first else None,
        first.cost_pusd if first else None,
        *astuple(settled.tokens),
    )


def lost_values(opened: AttemptOpened, at_us: int) -> Values:
    """Return the values of an attempt whose worker died: its bound, until evidence arrives."""
    said: DatabaseRow = {
        **dict.fromkeys(TOKEN_COLUMNS.values(), 0),
        "settled_us": at_us,
        "status": LOST,
        "basis": "bound",
        "cost_pusd": opened.bound_pusd,
        "engine_us": 0,
        "flag": LOST,
    }
    return tuple(map(said.get, SETTLED))


def settle_row(attempt_id: str, values: Values) -> DatabaseRow:
    """Return the update that ends an attempt whose row is written already."""
    return {"of_attempt": attempt_id, **dict(zip(SETTLED, values, strict=True))}


def add_opened(
    rows: RowBatch, record: AttemptOpened, journal: str, holds: SplitHolds
) -> NewAttempt:
    """Add an open to `rows.attempts`, where a settle of the same batch can complete it."""
    opened = opened_values(record, journal)
    attempt = NewAttempt(record.attempt_id, opened, holds.held, UNSETTLED, booked=holds.booked)
    rows.attempts.append(attempt)
    if record.decision or record.shadow_policy:
        seen = (record.attempt_id, record.opened_us, record.decision)
        shadow = _storable(_shadow_of(record))
        rows.decisions.append((*seen, *shadow, record.inputs or None, record.line_us))
    return attempt


def add_settled(
    rows: RowBatch, opened: AttemptOpened, settled: AttemptSettled, *, late: bool = False
) -> None:
    """Add all that a settle writes besides the attempt's own row."""
    if opened.backend == "own" and opened.pool is not None:
        rows.own.add((opened.pool, settled.settled_us))
    postings = postings_for_attempt(opened, settled, suspended=late)
    rows.postings += posting_values(opened.attempt_id, settled.settled_us, postings)
    surplus = surplus_pusd(settled)
    if surplus and settled.cost_pusd is not None:
        booked = settled.cost_pusd
        amounts = booked, booked + surplus, settled.plausible_pusd, counted_claim_pusd(settled)
        rows.claims.append((opened.attempt_id, settled.settled_us, *amounts, None, None, None))
    rows.compared += [
        (
            opened.attempt_id,
            cost.comparator,
            place,
            cost.price_version,
            cost.ratio_ppm,
            cost.cost_pusd,
            cost.cached_tokens,
        )
        for place, cost in enumerate(settled.compared)
    ]
    rows.legs += [
        (opened.attempt_id, place, *_storable(astuple(leg)))
        for place, leg in enumerate(settled.legs)
    ]


def add_lost(rows: RowBatch, opened: AttemptOpened, at_us: int) -> None:
    entry = f"{opened.attempt_id}:suspense"
    rows.postings += posting_values(entry, at_us, postings_for_suspense(opened))


def end_state(settled: AttemptSettled) -> HoldState:
    return HoldState.VOIDED if not settled.cost_pusd else HoldState.POSTED


def refusal_row(record: RequestRefused) -> DatabaseRow:
    names = RequestRefused.__struct_fields__
    row = dict(zip(names, _storable(astuple(record)), strict=True))
    row["decision"] = record.decision or None
    return row


def cache_hit_row(record: CacheHit) -> DatabaseRow:
    names = CacheHit.__struct_fields__
    row = dict(zip(names, _storable(astuple(record)), strict=True))
    row["tags"] = _tags_of(record.tags)
    return row


def opened_record_of(row: Mapping[str, Any]) -> AttemptOpened:
    """Return the open record from its stored row, without holds and decision."""
    values = {name: row[name] for name in _RECORDED}
    return AttemptOpened(**values, tags=tuple((row["tags"] or {}).items()))


def _tags_of(tags: tuple[tuple[str, str], ...]) -> dict[str, str] | None:
    if not tags:
        return None
    names, texts = zip(*tags, strict=True)
    return dict(zip(names, _storable(texts), strict=True))


def _storable(values: Values) -> Values:
    """Return values without NUL, which PostgreSQL's text type rejects, to lose no record."""
    if "\0" not in "".join([value for value in values if isinstance(value, str)]):
        return values
    return tuple(
        value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values
    )


def _flag(opened: AttemptOpened, settled: AttemptSettled, *, late: bool) -> str | None:
    """Return the flag of the most important finding, `None` if there is none."""
    if settled.cost_pusd is None:
        return "unpriced"
    findings = (
        (settled.disputed, DISPUTED),
        (settled.cost_pusd > opened.bound_pusd or surplus_pusd(settled), OVER_BOUND),
        (settled.unknown_tier, UNKNOWN_TIER),
        (late, "late"),
        (settled.unseen, UNSEEN),
        (settled.partly_read, PARTLY_READ),
        (settled.partly_priced, PARTLY_PRICED),
    )
    return next((flag for holds, flag in findings if holds), None)


_SHADOW = ("shadow_policy", "shadow_target", "shadow_reason")
_APART = {"holds", "tags", "decision", "inputs", "line_us", "counts_on", *_SHADOW}
_RECORDED = tuple(name for name in AttemptOpened.__struct_fields__ if name not in _APART)
_ENDED = (
    "basis", "cost_pusd", "ttft_us", "duration_us", "engine_us", "finish_reason", "error",
    "slo_met",
)  # fmt: skip
_opened_of, _shadow_of = attrgetter(*_RECORDED), attrgetter(*_SHADOW)
_ended_of = attrgetter(*_ENDED)
# The columns of an attempt's row, in the order of the table.
OPENED = (*_RECORDED, "tags", "journal")
SETTLED = (
    "settled_us", "status", "http_status", *_ENDED, "flag", "tier", "compared_with",
    "compared_pusd", *TOKEN_COLUMNS.values(),
)  # fmt: skip
UNSETTLED: Values = (None,) * len(SETTLED)
