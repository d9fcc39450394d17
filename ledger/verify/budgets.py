"""Verification of budgets: windows, grants and holds must follow from what was charged.

Windows, grants and holds change while money moves, so no seal covers them. Each is recomputed: a
hold from its sealed attempt, a window from its holds, grants from their window, and the limit of a
window from the versions of its budget, which are in the audit log.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Generator
from typing import NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select

from ledger.budgets.binding import BoundBudgets, default_of
from ledger.budgets.windows import Period, window_at
from ledger.journals.records import HoldState
from ledger.orm.books import LOST, AttemptRow, ClaimRow, JournalPositionRow
from ledger.orm.budgets import (
    BOOKED,
    NO_HOST,
    BudgetRow,
    BudgetVersionRow,
    BudgetWindowRow,
    GrantRow,
    HoldRow,
)
from ledger.orm.condensings import RetiredHoldsRow
from ledger.orm.types import exact_sum

Found = Generator[tuple[str, str], None, None]
_Key = tuple[str, int]  # budget, window
HOUR_S = 3600
_S = 10**6


def grants_are_within_limits(connection: Connection) -> Found:
    """Check that grants of a hard budget's window add up to it, and that none is overspent.

    Hosts' grants must be within the highest limit under which they were made. A limit that was
    lowered later, or spend from before the budget, is not a finding.
    """
    budgets = BoundBudgets(connection)
    sums: dict[_Key, int] = {}
    hosts: dict[_Key, int] = {}
    query = select(
        GrantRow.budget_id,
        GrantRow.window,
        GrantRow.host,
        GrantRow.granted_pusd,
        GrantRow.spent_pusd,
    ).order_by(GrantRow.budget_id, GrantRow.window, GrantRow.host)
    for budget_id, start, host, granted, spent in connection.execute(query):
        sums[budget_id, start] = sums.get((budget_id, start), 0) + granted
        if host != NO_HOST:
            hosts[budget_id, start] = hosts.get((budget_id, start), 0) + granted
        bound = budgets.of(budget_id)
        if spent > granted and bound is not None and bound.hard:
            yield f"{budget_id} {start}", f"{host} spent {spent} of a grant of {granted}"
    yield from _windows_of(connection, budgets, sums, hosts)
    for (budget_id, start), granted in sums.items():
        bound = budgets.of(budget_id)
        if granted and bound is not None and bound.hard:
            yield f"{budget_id} {start}", f"{granted} granted, and no window counts them"


def _windows_of(
    connection: Connection, budgets: BoundBudgets, sums: dict[_Key, int], hosts: dict[_Key, int]
) -> Found:
    """Check windows against `sums`, and remove the checked windows from it."""
    table, said = BudgetWindowRow, _BudgetStatement(connection)
    columns = (
        table.budget_id, table.window, table.granted_pusd, table.limit_pusd, table.spent_pusd
    )  # fmt: skip
    for budget_id, start, granted, limit, spent in connection.execute(select(*columns)):
        key, bound = (budget_id, start), budgets.of(budget_id)
        if bound is None or (not bound.hard and key in sums):
            continue  # grants from the time as a hard budget have no effect
        if granted != sums.pop(key, 0):
            yield f"{budget_id} {start}", f"window says {granted} granted, grants differ"
        given = hosts.get(key, 0)
        if limit is not None and given > limit:
            yield f"{budget_id} {start}", f"{given} granted under a limit of {limit}"
        if not granted and said.was_soft(budget_id):
            continue  # its spend was only counted then
        if bound.hard and spent > max(granted, bound.limit_pusd):
            words = f"spent {spent} of {bound.limit_pusd}, which nobody was granted"
            yield f"{budget_id} {start}", words


def grants_are_spent(connection: Connection) -> Found:
    """Check that a hard budget's grants add up to its window's spend, and to hosts' settles.

    Budgets that changed their calendar are skipped, because their grants stay in windows of the old
    one. So is spend from the time when the budget was soft, which no grant covers.
    """
    budgets, said = BoundBudgets(connection), _BudgetStatement(connection)
    grants: dict[_Key, dict[str, int]] = defaultdict(dict)
    query = select(GrantRow.budget_id, GrantRow.window, GrantRow.host, GrantRow.spent_pusd)
    for budget_id, start, host, spent in connection.execute(query):
        grants[budget_id, start][host] = spent
    if not grants:
        return
    counted, settled = _counted(connection), _settled_amounts(connection)
    windows = select(BudgetWindowRow.budget_id, BudgetWindowRow.window, BudgetWindowRow.spent_pusd)
    for budget_id, start, spent in connection.execute(windows):
        bound, mine = budgets.of(budget_id), grants.get((budget_id, start))
        if bound is None or not bound.hard or mine is None or said.has_moved(budget_id):
            continue
        least = 0 if said.was_soft(budget_id) else spent - counted.get((budget_id, start), 0)
        if not least <= sum(mine.values()) <= spent:
            words = f"its grants say {sum(mine.values())} spent, the window {spent}"
            yield f"{budget_id} {start}", words
        for host, pusd in settled.get((budget_id, start), {}).items():
            if mine.get(host, 0) < pusd and not said.was_soft(budget_id):
                words = f"{host} says {mine.get(host, 0)} spent, and settled {pusd}"
                yield f"{budget_id} {start}", words


def totals_equal_sums(connection: Connection) -> Found:
    """Check that a window's spend is the sum of its holds, also those of retired attempts."""
    query = select(HoldRow.budget_id, HoldRow.window, exact_sum(HoldRow.actual_pusd)).group_by(
        HoldRow.budget_id, HoldRow.window
    )
    sums = {(row[0], row[1]): row[2] for row in connection.execute(query)}
    gone = select(RetiredHoldsRow.budget_id, RetiredHoldsRow.window, RetiredHoldsRow.actual_pusd)
    for budget_id, start, pusd in connection.execute(gone):
        sums[budget_id, start] = sums.get((budget_id, start), 0) + pusd
    windows = select(BudgetWindowRow.budget_id, BudgetWindowRow.window, BudgetWindowRow.spent_pusd)
    for budget_id, start, spent in connection.execute(windows):
        sum_ = sums.pop((budget_id, start), 0)
        if spent != sum_:
            yield f"{budget_id} {start}", f"window says {spent} spent, its holds {sum_}"
    for (budget_id, start), sum_ in sums.items():
        if sum_:
            yield f"{budget_id} {start}", f"holds came to {sum_}, and no window counts them"


def windows_count_claims(connection: Connection) -> Found:
    """Check that a window's claims are the sum of its holds' claims, and none is too high."""
    query = (
        select(HoldRow.budget_id, HoldRow.window, exact_sum(ClaimRow.counted_pusd))
        .join(ClaimRow, ClaimRow.attempt_id == HoldRow.attempt_id)
        .where(ClaimRow.counted_pusd != 0)
        .group_by(HoldRow.budget_id, HoldRow.window)
    )
    sums = {(row[0], row[1]): row[2] for row in connection.execute(query)}
    windows = select(
        BudgetWindowRow.budget_id, BudgetWindowRow.window, BudgetWindowRow.claimed_pusd
    )
    for budget_id, start, claimed in connection.execute(windows):
        sum_ = sums.pop((budget_id, start), 0)
        if claimed != sum_:
            yield f"{budget_id} {start}", f"window says {claimed} claimed, its claims {sum_}"
    for (budget_id, start), sum_ in sums.items():
        yield f"{budget_id} {start}", f"claims count {sum_}, and no window has them"
    surplus = ClaimRow.claimed_pusd - ClaimRow.booked_pusd
    most = func.coalesce(ClaimRow.plausible_pusd, 0)
    wrong = or_(
        ClaimRow.counted_pusd < 0, ClaimRow.counted_pusd > surplus, ClaimRow.counted_pusd > most
    )
    claims = select(ClaimRow.attempt_id, ClaimRow.counted_pusd)
    for attempt_id, counted in connection.execute(claims.where(wrong)):
        yield attempt_id, f"its claim counts {counted}, which is more than is plausible in it"
    whole = case((most < 0, 0), (most > surplus, surplus), else_=most)
    entered = ClaimRow.resolved_us.is_not(None) & ClaimRow.resolved_by.is_not(None)
    unsaid = ClaimRow.resolved_us.is_(None) & ClaimRow.resolved_by.is_(None)
    unsettled = ClaimRow.resolution.is_(None) & ((ClaimRow.counted_pusd < whole) | ~unsaid)
    settled = ClaimRow.resolution.is_not(None) & ~entered
    for attempt_id, counted in connection.execute(claims.where(or_(unsettled, settled))):
        yield attempt_id, f"its claim counts {counted}, and nobody resolved it"


def holds_follow_attempts(connection: Connection) -> Found:
    """Check that a hold equals its attempt's bound (0 if soft) and ends as the attempt ends."""
    cost: ColumnElement[int] = func.coalesce(AttemptRow.cost_pusd, 0)
    ended = case(
        (AttemptRow.settled_us.is_(None), HoldState.HELD.value),
        (AttemptRow.status == LOST, HoldState.SUSPENSE.value),
        (cost == 0, HoldState.VOIDED.value),
        else_=HoldState.POSTED.value,
    )
    booked = HoldRow.state == BOOKED
    wrong = or_(
        AttemptRow.attempt_id.is_(None),
        and_(~booked, HoldRow.state != ended),
        and_(~booked, HoldRow.amount_pusd.not_in([0, AttemptRow.bound_pusd])),
        and_(
            booked,
            HoldRow.amount_pusd != AttemptRow.bound_pusd,
            or_(HoldRow.actual_pusd.is_(None), HoldRow.amount_pusd != HoldRow.actual_pusd),
        ),
        and_(AttemptRow.settled_us.is_not(None), func.coalesce(HoldRow.actual_pusd, -1) != cost),
        and_(AttemptRow.settled_us.is_(None), HoldRow.actual_pusd.is_not(None)),
    )
    query = (
        select(HoldRow.attempt_id, HoldRow.budget_id, HoldRow.state, HoldRow.amount_pusd)
        .outerjoin(AttemptRow, AttemptRow.attempt_id == HoldRow.attempt_id)
        .where(wrong)
    )
    for attempt_id, budget_id, state, amount in connection.execute(query):
        yield attempt_id, f"its hold of {amount} on {budget_id} ({state}) is not what it came to"


def windows_are_as_declared(connection: Connection) -> Found:
    """Check that a window starts where its calendar says, under a limit of that time.

    Limits before the first stored version are unknown and not checked.
    """
    said = _BudgetStatement(connection)
    if not said:
        return
    hosts = select(GrantRow.budget_id, GrantRow.window).where(GrantRow.host != NO_HOST)
    granted = set(map(tuple, connection.execute(hosts.where(GrantRow.granted_pusd != 0))))
    rows = connection.execute(
        select(BudgetWindowRow.budget_id, BudgetWindowRow.window, BudgetWindowRow.limit_pusd)
    ).all()
    for budget_id, start, limit in rows:
        if not said.of(budget_id):
            yield f"{budget_id} {start}", "no such budget was ever declared"
            continue
        ends = said.ends_of(budget_id, start)
        if ends is None:
            yield f"{budget_id} {start}", "no window of its calendar begins then"
        elif limit is None and (budget_id, start) not in granted:
            continue
        elif said.is_known(budget_id, start) and limit not in said.limits(budget_id, start, ends):
            ahead_us = said.declared_after(budget_id, limit, ends)
            if ahead_us is None or not _was_set_back(connection, ahead_us, start, ends):
                yield f"{budget_id} {start}", f"granted under {limit}, which was no limit then"
    known = {(row[0], row[1]) for row in rows}
    held = select(HoldRow.budget_id, HoldRow.window).distinct()
    for budget_id, start in connection.execute(held):
        if (budget_id, start) not in known and said.ends_of(budget_id, start) is None:
            yield f"{budget_id} {start}", "held in a window that no declared budget has"


class _Version(NamedTuple):
    recorded_us: int
    period: str
    timezone: str
    limit_pusd: int
    hard: bool


class _BudgetStatement:
    """All declared versions of budgets, by account: its own and the default of its kind."""

    def __init__(self, connection: Connection) -> None:
        self._versions: dict[str, list[_Version]] = defaultdict(list)
        columns = (getattr(BudgetVersionRow, name) for name in ("budget_id", *_Version._fields))
        for budget_id, *said in connection.execute(select(*columns).order_by(BudgetVersionRow.seq)):
            self._versions[budget_id].append(_Version(*said))
        first = min((said[0].recorded_us for said in self._versions.values()), default=0)
        rows = connection.execute(select(BudgetRow.id, BudgetRow.created_us))
        made: dict[str, int] = {row[0]: row[1] for row in rows}
        # Budgets older than stored versions: their earlier limits are unknown.
        self._unknown_until = {
            name: first
            for name, said in self._versions.items()
            if said[0].recorded_us == first and made.get(name, first) < first
        }

    def __bool__(self) -> bool:
        return bool(self._versions)

    def of(self, account: str) -> list[_Version]:
        names = (account, default_of(account) or "")
        return [version for name in names for version in self._versions.get(name, ())]

    def has_moved(self, account: str) -> bool:
        return len({version.timezone for version in self.of(account)}) > 1

    def was_soft(self, account: str) -> bool:
        """Return whether the budget was soft at any time, or may have been."""
        unknown = any(name in self._unknown_until for name in (account, default_of(account)))
        return unknown or not all(version.hard for version in self.of(account))

    def is_known(self, account: str, start: int) -> bool:
        names = (account, default_of(account) or "")
        return all(self._unknown_until.get(name, 0) <= start * _S for name in names)

    def ends_of(self, account: str, start: int) -> int | None:
        """Return the end of the window that begins at `start`, `None` if none begins there."""
        for period, timezone in {
            (version.period, version.timezone) for version in self.of(account)
        }:
            window = window_at(cast("Period", period), timezone, start)
            if window.start_s == start:
                return window.end_s
        return None

    def limits(self, account: str, start: int, ends: int) -> set[int]:
        """Return the limits in force during a window, extended by 1 h for hosts' clocks.

        A window before the first version shows that a clock was set back; the first version's limit
        counts. Versions with the same time also show this: each of them, the earliest one included,
        may have been in force in any window since the version before them.
        """
        found = set()
        for name in (account, default_of(account) or ""):
            said = self._versions.get(name, [])
            times = [line.recorded_us for line in said]
            since = bisect_right(times, (start - HOUR_S) * _S)
            until = bisect_right(times, (ends + HOUR_S) * _S)
            tied = bisect_right(times, times[until]) if until < len(times) else until
            until = tied if tied > until + 1 else until
            found |= {line.limit_pusd for line in said[max(0, since - 1) : max(1, until)]}
        return found

    def declared_after(self, account: str, limit: int | None, ends: int) -> int | None:
        """Return the earliest time of a version with this limit at or after a window's end."""
        times = (
            version.recorded_us
            for version in self.of(account)
            if version.limit_pusd == limit and version.recorded_us >= ends * _S
        )
        return min(times, default=None)


def _was_set_back(connection: Connection, ahead_us: int, start: int, ends: int) -> bool:
    """Return whether attempts of a window come after an attempt opened at `ahead_us` or later.

    Such an order shows that a clock was set back. Attempts and their order are sealed.
    """
    first = select(func.min(AttemptRow.seq)).where(AttemptRow.opened_us >= ahead_us)
    later = select(AttemptRow.seq).where(
        AttemptRow.opened_us >= start * _S,
        AttemptRow.opened_us < ends * _S,
        AttemptRow.seq > first.scalar_subquery(),
    )
    return connection.execute(later.limit(1)).first() is not None


def _counted(connection: Connection) -> dict[_Key, int]:
    """Return the charges of holds without a grant, by window."""
    query = (
        select(HoldRow.budget_id, HoldRow.window, exact_sum(HoldRow.actual_pusd))
        .where(HoldRow.amount_pusd == 0, HoldRow.actual_pusd > 0, HoldRow.state != BOOKED)
        .group_by(HoldRow.budget_id, HoldRow.window)
    )
    return {(row[0], row[1]): row[2] for row in connection.execute(query)}


def _settled_amounts(connection: Connection) -> dict[_Key, dict[str, int]]:
    """Return each host's sums of settled attempts whose journals are still listed."""
    query = (
        select(
            HoldRow.budget_id,
            HoldRow.window,
            JournalPositionRow.host,
            exact_sum(HoldRow.actual_pusd),
        )
        .join(AttemptRow, AttemptRow.attempt_id == HoldRow.attempt_id)
        .join(JournalPositionRow, JournalPositionRow.journal == AttemptRow.journal)
        .where(HoldRow.amount_pusd > 0, HoldRow.actual_pusd > 0, HoldRow.state != BOOKED)
        .group_by(HoldRow.budget_id, HoldRow.window, JournalPositionRow.host)
    )
    found: dict[_Key, dict[str, int]] = defaultdict(dict)
    for budget_id, start, host, pusd in connection.execute(query):
        found[budget_id, start][host] = pusd
    return found


BUDGET_CHECKS: tuple[Callable[[Connection], Found], ...] = (
    grants_are_within_limits,
    grants_are_spent,
    totals_equal_sums,
    windows_count_claims,
    holds_follow_attempts,
    windows_are_as_declared,
)
