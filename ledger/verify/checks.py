"""The ledger's invariants as a list of small checks, each of which yields its findings.

`breakeven ledger verify`, the tests and the dashboard run them. A check only reads, states its
invariant in its docstring, and recomputes it from other rows than those that it judges.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, or_, select
from sqlalchemy.exc import InvalidRequestError

from ledger.accounts import disputed_expense
from ledger.journals.records import HoldState
from ledger.journals.token_kinds import TOKEN_KINDS, TokenCounts
from ledger.orm.base import aliased
from ledger.orm.books import (
    LOST,
    AttemptRow,
    ClaimRow,
    JournalPositionRow,
    PostingRow,
    PriceVersionRow,
    token_column,
)
from ledger.orm.budgets import HoldRow
from ledger.orm.types import exact_sum
from ledger.prices.book import Price, tier_cost_pusd
from ledger.seals.compactions import condensings_hold
from ledger.seals.retirements import retirements_hold
from ledger.verify.annexes import annexes_hold
from ledger.verify.budgets import BUDGET_CHECKS
from ledger.verify.cells import cells_are_named
from ledger.verify.collection import collecting_seldom
from ledger.verify.entries import entries_have_a_cause
from ledger.verify.hours import Found, hours_add_up, hours_hold_every_settle
from ledger.verify.journals import journals_are_whole, nothing_is_quarantined
from ledger.verify.legs import legs_add_up
from ledger.verify.registers import registers_hold
from ledger.verify.rollups import sums_are_the_rows
from ledger.verify.seals import seals_hold
from ledger.verify.stored import stored_bytes_add_up
from ledger.writing.rows import DISPUTED

FINDINGS_PER_CHECK = 100
ROWS_AT_ONCE = 5_000
_LIMB = 10**12
# Errors that a manually edited row can cause in code that reads it, without connection errors.
_UNREADABLE = (
    ArithmeticError,
    AssertionError,
    InvalidRequestError,
    LookupError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Result of a verification, with at most `FINDINGS_PER_CHECK` findings per check.

    `truncated` names the checks with more. `disputed` counts attempts with implausible usage
    reports, which break no invariant.
    """

    checks: tuple[str, ...]
    findings: tuple[Finding, ...]
    truncated: tuple[str, ...]
    disputed: int = 0

    @property
    def is_clean(self) -> bool:
        return not self.findings


Check = Callable[[Connection], Found]


@collecting_seldom()
def verify(
    connection: Connection, begins: Callable[[int, str], None] | None = None
) -> VerifyResult:
    """Run every check on one connection, which should be one snapshot.

    `begins` is called before each check with its index in `CHECKS` and its name.
    """
    findings: list[Finding] = []
    truncated: list[str] = []
    for place, check in enumerate(CHECKS):
        name = check.__name__
        if begins is not None:
            begins(place, name)
        found: list[tuple[str, str]] = []
        with closing(check(connection)) as finding:
            try:
                found += islice(finding, FINDINGS_PER_CHECK + 1)
            except _UNREADABLE as error:
                found.append(("the check itself", f"rows that nothing wrote so: {error!r}"[:300]))
        if len(found) > FINDINGS_PER_CHECK:
            truncated.append(name)
        findings += [Finding(name, *pair) for pair in found[:FINDINGS_PER_CHECK]]
    names = tuple(check.__name__ for check in CHECKS)
    disputed = select(func.count()).where(AttemptRow.flag == DISPUTED)
    count = connection.execute(disputed).scalar_one()
    return VerifyResult(names, tuple(findings), tuple(truncated), count)


def postings_balance(connection: Connection) -> Found:
    """Check that the lines of every entry add up to zero."""
    # Summed in two halves: SQLite's own sum of large lines could overflow.
    limb: ColumnElement[int] = literal_column(str(_LIMB))
    high = func.sum(PostingRow.amount_pusd.op("/")(limb))
    low = func.sum(PostingRow.amount_pusd.op("%")(limb))
    query = (
        select(PostingRow.entry_id, exact_sum(PostingRow.amount_pusd))
        .group_by(PostingRow.entry_id)
        .having(high * limb + low != 0)
    )
    for entry_id, total in connection.execute(query):
        yield entry_id, f"unbalanced by {total} pico-USD"


def attempts_are_posted(connection: Connection) -> Found:
    """Check that a settled, priced attempt is posted to its team once, at exactly its cost."""
    line = aliased(PostingRow)
    query = (
        select(AttemptRow.attempt_id, AttemptRow.cost_pusd, line.amount_pusd)
        .outerjoin(
            line,
            and_(
                line.entry_id == AttemptRow.attempt_id,
                # An expression, so that the index on accounts is not scanned for every attempt.
                line.account + "" == "expense:team:" + AttemptRow.team_id,
            ),
        )
        .where(
            AttemptRow.settled_us.is_not(None),
            AttemptRow.status != LOST,
            AttemptRow.cost_pusd != 0,
            or_(line.amount_pusd.is_(None), line.amount_pusd != AttemptRow.cost_pusd),
        )
    )
    for attempt_id, cost, posted in connection.execute(query):
        yield attempt_id, f"cost {cost} pico-USD, posted {posted}"


def claims_are_posted(connection: Connection) -> Found:
    """Check that a claim beyond an attempt's cost, and nothing else, is posted as disputed.

    Each claim is posted once.
    """
    line = aliased(PostingRow)
    query = (
        select(
            ClaimRow.attempt_id,
            ClaimRow.settled_us,
            AttemptRow.settled_us,
            ClaimRow.booked_pusd,
            ClaimRow.claimed_pusd,
            AttemptRow.cost_pusd,
            line.amount_pusd,
        )
        .outerjoin(AttemptRow, AttemptRow.attempt_id == ClaimRow.attempt_id)
        .outerjoin(
            line,
            and_(
                line.entry_id == ClaimRow.attempt_id,
                line.account + "" == disputed_expense("") + AttemptRow.team_id,
            ),
        )
    )
    for attempt_id, at_us, settled_us, booked, claimed, cost, posted in connection.execute(query):
        if (cost, settled_us, posted) != (booked, at_us, claimed - booked):
            yield attempt_id, f"claimed {claimed} pico-USD, booked {cost}, disputed {posted}"
    claim = select(ClaimRow.attempt_id).where(ClaimRow.attempt_id == PostingRow.entry_id)
    posted_alone = (
        select(PostingRow.entry_id, PostingRow.amount_pusd)
        .join(AttemptRow, AttemptRow.attempt_id == PostingRow.entry_id)
        .where(PostingRow.account.startswith(disputed_expense("")), ~claim.exists())
    )
    for entry, amount in connection.execute(posted_alone):
        yield entry, f"{amount} pico-USD are disputed, and no claim is behind them"


def attempts_are_whole(connection: Connection) -> Found:
    """Check that each attempt has one complete row, flagged if it is unpriced or lost."""
    twice = (
        select(AttemptRow.request_id, AttemptRow.attempt_no)
        .group_by(AttemptRow.request_id, AttemptRow.attempt_no)
        .having(func.count() > 1)
    )
    for request_id, number in connection.execute(twice):
        yield f"{request_id}.{number}", "more than one row for one try"
    partial = select(AttemptRow.attempt_id, AttemptRow.flag).where(
        AttemptRow.settled_us.is_not(None),
        or_(
            AttemptRow.basis.is_(None),
            AttemptRow.status.is_(None),
            token_column("output").is_(None),
            and_(AttemptRow.cost_pusd.is_(None), func.coalesce(AttemptRow.flag, "") != "unpriced"),
        ),
    )
    for attempt_id, flag in connection.execute(partial):
        yield attempt_id, f"settled without basis, status, tokens or cost (flag {flag})"


def costs_rederive(connection: Connection) -> Found:
    """Check that an API attempt's cost is its tokens at its price version and service tier.

    An attempt that failed before any work has no tokens and pays no request fee.
    """
    prices = {
        version: msgspec.convert({**document, "version": version}, Price)
        for version, document in connection.execute(
            select(PriceVersionRow.version, PriceVersionRow.price)
        )
    }
    # Rows from before audio and searches were counted have nulls.
    columns: list[Any] = [func.coalesce(token_column(kind.field), 0) for kind in TOKEN_KINDS]
    query = select(
        AttemptRow.attempt_id,
        AttemptRow.price_version,
        AttemptRow.cost_pusd,
        AttemptRow.tier,
        AttemptRow.status,
        *columns,
    ).where(
        AttemptRow.backend == "api",
        AttemptRow.settled_us.is_not(None),
        AttemptRow.cost_pusd.is_not(None),
        AttemptRow.status != LOST,
    )
    with connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE}) as rows:
        for attempt_id, version, cost, tier, status, *counts in rows:
            price = prices.get(version)
            if cost == 0 and not any(counts) and status != "finished":
                continue  # nothing was taken: no fee either
            if price is None:
                yield attempt_id, f"price version {version} is not in the book"
            elif cost != tier_cost_pusd(TokenCounts(*counts), price, tier)[0]:
                yield attempt_id, f"cost {cost} pico-USD does not follow from tokens and price"


def holds_end(connection: Connection) -> Found:
    """Check that a hold is open while its attempt is, and an attempt only while it may settle."""
    stale = (
        select(HoldRow.attempt_id, HoldRow.budget_id)
        .join(AttemptRow, AttemptRow.attempt_id == HoldRow.attempt_id)
        .where(HoldRow.state == HoldState.HELD.value, AttemptRow.settled_us.is_not(None))
    )
    for attempt_id, budget_id in connection.execute(stale):
        yield attempt_id, f"settled, but still held on {budget_id}"
    left = select(AttemptRow.attempt_id, AttemptRow.journal).where(
        AttemptRow.settled_us.is_(None),
        AttemptRow.journal.not_in(select(JournalPositionRow.journal)),
    )
    for attempt_id, journal in connection.execute(left):
        yield attempt_id, f"open, but its journal {journal} is finished"


CHECKS: tuple[Check, ...] = (
    postings_balance,
    entries_have_a_cause,
    attempts_are_posted,
    claims_are_posted,
    attempts_are_whole,
    costs_rederive,
    holds_end,
    *BUDGET_CHECKS,
    legs_add_up,
    hours_add_up,
    hours_hold_every_settle,
    nothing_is_quarantined,
    journals_are_whole,
    seals_hold,
    annexes_hold,
    registers_hold,
    retirements_hold,
    condensings_hold,
    sums_are_the_rows,
    cells_are_named,
    stored_bytes_add_up,
)
