"""Judges a case that was played: rows of the ledger against what is right.

Whatever else is right, no row is booked above its hold, and no team above its hard budget.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from field_client import CaseRun

PUSD = 10**12
ANY_FLAG = "*"
WRITES = ("cache_write_tokens", "cache_write_1h_tokens")
# What a row may have in place of a flag, to say that its price or its usage is partly known.
PARTLY = ("partly_read", "partly_known", "unread")


def faults_of(run: CaseRun) -> list[str]:
    """What is wrong; empty if one of the outcomes that are right came to pass."""
    always = list(_broken_bounds(run))
    outcomes = [list(_wrong(run, right)) for right in run.case.right]
    return always + min(outcomes, key=len)


def billed_pusd(row: dict[str, Any]) -> int:
    """What the provider says: claimed where that is not what is booked."""
    claimed = row.get("claimed_pusd")
    return int((row["cost_pusd"] if claimed is None else claimed) or 0)


def is_flagged(row: dict[str, Any]) -> bool:
    return row["flag"] is not None or any(row.get(name) for name in PARTLY)


def _broken_bounds(run: CaseRun) -> Iterator[str]:
    for row in run.rows:
        if row["cost_pusd"] is None:
            yield "a row has no cost"
        elif row["cost_pusd"] > row["bound_pusd"]:
            yield f"booked {row['cost_pusd']} above the hold {row['bound_pusd']}"
    spent = sum(row["cost_pusd"] or 0 for row in run.rows)
    limit = run.case.budget_usd
    if limit is not None and spent > Decimal(str(limit)) * PUSD:
        yield f"booked {spent} of a hard budget of {limit} USD"


def _wrong(run: CaseRun, right: dict[str, Any]) -> Iterator[str]:
    if right.get("refused"):
        yield from _not_refused(run)
        return
    if "same_hold" in right:
        yield from _other_holds(run, *right["same_hold"], right["status"])
        return
    statuses = [status for each in run.statuses.values() for status in each]
    if wrong := sorted(set(statuses) - set(right["status"])):
        yield f"answers {wrong}, right is {right['status']}"
    if "admitted" in right and not _fits(statuses.count(200), right["admitted"]):
        yield f"{statuses.count(200)} admitted, right is {right['admitted']}"
    if not run.rows:
        yield "no row"
    for row in run.rows:
        yield from _wrong_row(row, right)
    if right.get("made"):
        yield from _unbooked(run, int(right["output_usd_per_million"]) * PUSD // 10**6)
    first = run.made_at_first
    if "early" in right and (first is None or first >= right["early"]):
        yield f"the first word was read when {first} were made"


def _not_refused(run: CaseRun) -> Iterator[str]:
    if any(not 400 <= status < 500 for each in run.statuses.values() for status in each):
        yield "not refused"
    if run.upstream:
        yield "something was sent"
    if run.rows:
        yield "a row"


def _other_holds(run: CaseRun, before: str, after: str, statuses: list[int]) -> Iterator[str]:
    for step in (before, after):
        if set(run.statuses[step]) != set(statuses):
            yield f"{step}: answers {run.statuses[step]}"
    holds = {step: {row["bound_pusd"] for row in run.rows_of(step)} for step in (before, after)}
    if holds[before] != holds[after]:
        yield f"held at {holds[before]} before and at {holds[after]} after"


def _wrong_row(row: dict[str, Any], right: dict[str, Any]) -> Iterator[str]:
    money = {
        "booked_usd": row["cost_pusd"] or 0,
        "hold_usd": row["bound_pusd"],
        "billed_usd": billed_pusd(row),
    }
    for name, pusd in money.items():
        if name in right and not _fits(Decimal(pusd) / PUSD, right[name]):
            yield f"{name} {Decimal(pusd) / PUSD}, right is {right[name]}"
    if "basis" in right and row["basis"] != right["basis"]:
        yield f"basis {row['basis']}"
    if "flag" in right:
        yield from _wrong_flag(row, right["flag"])
    for kind, count in right.get("tokens", {}).items():
        seen = _tokens(row, kind)
        if not _fits(seen, count):
            yield f"{seen} {kind} tokens, right is {count}"


def _wrong_flag(row: dict[str, Any], flag: str | None) -> Iterator[str]:
    right = is_flagged(row) if flag == ANY_FLAG else row["flag"] == flag
    if not right:
        yield f"flag {row['flag']}, right is {flag}"


def _tokens(row: dict[str, Any], kind: str) -> int:
    columns = WRITES if kind == "written" else (f"{kind}_tokens",)
    return sum(row[column] or 0 for column in columns)


def _unbooked(run: CaseRun, rate_pusd: int) -> Iterator[str]:
    """Judges a single request; the prompt is not counted."""
    made, booked = run.upstream[0].made, sum(row["cost_pusd"] or 0 for row in run.rows)
    if not made:
        yield "nothing was made: the case shows nothing"
    if booked < made * rate_pusd:
        yield f"booked {booked} for {made} tokens"


def _fits(value: Decimal | int, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return value == Decimal(wanted)
    least, most = wanted.get("least", "-Infinity"), wanted.get("most", "Infinity")
    return Decimal(least) <= value <= Decimal(most)
