"""Records as rows: what an open, a settle or a loss means for every table, without a database.

A settled attempt is one row, its postings, its holds' end, and what comparators would have
charged. A lost one (its worker is gone) is the same at its bound, marked `lost`, until evidence
comes; a settle that arrives then corrects it by further postings, marked `late`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.accounts import Posting, postings_for_attempt, postings_for_suspense
from ledger.holds import HoldState
from ledger.records import (
    TOKEN_COLUMNS,
    AttemptOpened,
    AttemptSettled,
    Hold,
    RequestRefused,
)

LOST = "lost"
UNKNOWN_TIER = "unknown_tier"
DISPUTED = "disputed"
Row = dict[str, Any]


@dataclass(slots=True)
class Rows:
    """What one transaction writes. `spent` is by (budget, window); it may be negative.

    `own` says which pools' engine time settled, and when: their hours may be closed already.
    """

    attempts: list[Row] = field(default_factory=list)
    settles: list[Row] = field(default_factory=list)
    decisions: list[Row] = field(default_factory=list)
    compared: list[Row] = field(default_factory=list)
    postings: list[Row] = field(default_factory=list)
    holds: list[Row] = field(default_factory=list)
    hold_ends: list[Row] = field(default_factory=list)
    refusals: list[Row] = field(default_factory=list)
    spent: dict[tuple[str, int], int] = field(default_factory=dict)
    own: set[tuple[str, int]] = field(default_factory=set)

    def spend(self, hold: Hold, amount_pusd: int) -> None:
        account = (hold.scope, hold.window)
        self.spent[account] = self.spent.get(account, 0) + amount_pusd


def opened_row(record: AttemptOpened, journal: str) -> Row:
    """An attempt before its answer: every column of the settle is null."""
    row = {name: getattr(record, name) for name in _OPENED}
    row["tags"] = _storable(dict(record.tags)) or None
    row["journal"] = journal
    return _storable(row)


def settled_values(opened: AttemptOpened, settled: AttemptSettled, *, late: bool) -> Row:
    tokens = settled.tokens
    first = settled.compared[0] if settled.compared else None
    return {
        **_storable({name: getattr(settled, name) for name in _SETTLED}),
        **{column: getattr(tokens, name) for name, column in TOKEN_COLUMNS.items()},
        "flag": _flag(opened, settled, late=late),
        "compared_with": first.comparator if first else None,
        "compared_pusd": first.cost_pusd if first else None,
    }


def lost_values(opened: AttemptOpened, at_us: int) -> Row:
    """The worker is gone: the bound counts until evidence comes, with nothing else claimed."""
    return {
        **UNSETTLED,
        "settled_us": at_us,
        "status": LOST,
        "basis": "bound",
        "cost_pusd": opened.bound_pusd,
        "engine_us": 0,
        "flag": LOST,
        **dict.fromkeys(TOKEN_COLUMNS.values(), 0),
    }


def add_opened(rows: Rows, record: AttemptOpened, journal: str) -> Row:
    """The row itself goes to `rows.attempts`, so that a settle in the same batch can fill it."""
    row = {**opened_row(record, journal), **UNSETTLED}
    rows.attempts.append(row)
    if record.decision or record.shadow_policy:
        rows.decisions.append(
            _storable(
                {
                    "attempt_id": record.attempt_id,
                    "opened_us": record.opened_us,
                    "decision": record.decision,
                    **{name: getattr(record, name) for name in _SHADOW},
                }
            )
        )
    return row


def add_settled(
    rows: Rows, opened: AttemptOpened, settled: AttemptSettled, *, late: bool = False
) -> None:
    """Everything a settle adds besides the attempt's own row."""
    if opened.backend == "own" and opened.pool is not None:
        rows.own.add((opened.pool, settled.settled_us))
    postings = postings_for_attempt(opened, settled, suspended=late)
    rows.postings += posting_rows(opened.attempt_id, settled.settled_us, postings)
    rows.compared += [
        {
            "attempt_id": opened.attempt_id,
            "comparator": one.comparator,
            "position": place,
            "price_version": one.price_version,
            "ratio_ppm": one.ratio_ppm,
            "cost_pusd": one.cost_pusd,
        }
        for place, one in enumerate(settled.compared)
    ]


def add_lost(rows: Rows, opened: AttemptOpened, at_us: int) -> None:
    entry = f"{opened.attempt_id}:suspense"
    rows.postings += posting_rows(entry, at_us, postings_for_suspense(opened))


def end_state(settled: AttemptSettled) -> HoldState:
    return HoldState.VOIDED if not settled.cost_pusd else HoldState.POSTED


def hold_row(attempt_id: str, hold: Hold) -> Row:
    return {
        "attempt_id": attempt_id,
        "budget_id": hold.scope,
        "window": hold.window,
        "amount_pusd": hold.amount_pusd,
        "state": HoldState.HELD.value,
        "actual_pusd": None,
    }


def posting_rows(entry_id: str, at_us: int, postings: tuple[Posting, ...]) -> list[Row]:
    return [
        {
            "entry_id": entry_id,
            "line": line,
            "at_us": at_us,
            "account": posting.account,
            "amount_pusd": posting.amount_pusd,
        }
        for line, posting in enumerate(postings)
    ]


def refusal_row(record: RequestRefused) -> Row:
    row = {name: getattr(record, name) for name in RequestRefused.__struct_fields__}
    row["decision"] = record.decision or None
    return _storable(row)


def opened_from(row: Mapping[str, Any]) -> AttemptOpened:
    """The open record again, from its stored row (holds and decision are kept elsewhere)."""
    values = {name: row[name] for name in _OPENED}
    return AttemptOpened(**values, tags=tuple((row["tags"] or {}).items()))


def _storable(row: Row) -> Row:
    """PostgreSQL's texts hold no NUL, and no record may be lost for a text's sake."""
    for name, value in row.items():
        if isinstance(value, str) and "\0" in value:
            row[name] = value.replace("\0", "\ufffd")
    return row


def _flag(opened: AttemptOpened, settled: AttemptSettled, *, late: bool) -> str | None:
    if settled.cost_pusd is None:
        return "unpriced"
    if settled.disputed:
        return DISPUTED
    if settled.cost_pusd > opened.bound_pusd:
        return "over_bound"
    if settled.unknown_tier:
        return UNKNOWN_TIER
    return "late" if late else None


_SHADOW = ("shadow_policy", "shadow_target", "shadow_reason")
_APART = {"holds", "tags", "decision", *_SHADOW}
_OPENED = tuple(name for name in AttemptOpened.__struct_fields__ if name not in _APART)
_SETTLED = tuple(
    name
    for name in AttemptSettled.__struct_fields__
    if name not in {"attempt_id", "tokens", "compared", "unknown_tier", "disputed"}
)
UNSETTLED: Row = {
    **dict.fromkeys(_SETTLED),
    **dict.fromkeys(TOKEN_COLUMNS.values()),
    "flag": None,
    "compared_with": None,
    "compared_pusd": None,
}
