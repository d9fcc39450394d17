"""Thresholds of budgets that were reached: each is noted once a window, and told until it is heard.

Any host may look. Who notes a threshold first is decided by the table's key; who tells it, by a
lease that ends: a teller that dies is followed by another one, so a message may come twice (it has
an id), and never not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, Engine, Update, insert, select, update
from sqlalchemy.exc import IntegrityError

from ledger.database import reading
from ledger.money import PPM
from ledger.orm_budgets import Budget, BudgetAlert, BudgetWindow
from ledger.windows import Period, window_at

US_PER_S = 1_000_000
LEASE_US = 30 * US_PER_S  # a teller's time, and the first wait after a failure
WAIT_LIMIT_US = 3600 * US_PER_S
TOLD_FOR_US = 48 * 3600 * US_PER_S  # then it is old news


@dataclass(frozen=True, slots=True)
class Alert:
    """One threshold (parts per million of the limit) of one budget in one window."""

    budget_id: str
    scope: str
    period: str
    window: int  # start, epoch seconds
    window_end: int
    threshold_ppm: int
    limit_pusd: int
    spent_pusd: int  # when it was noted
    hard: bool
    reached_us: int
    tries: int = 0

    @property
    def id(self) -> str:
        return f"{self.budget_id}:{self.window}:{self.threshold_ppm}"


def note(
    engine: Engine, thresholds: Mapping[str, Sequence[int]], *, at_us: int
) -> tuple[Alert, ...]:
    """Note what was reached since the last look, in this window or the one before it.

    `thresholds`: parts per million of the limit, by budget. Returns what this call noted.
    """
    with reading(engine) as connection:
        found = _reached(connection, thresholds, at_us)
    noted = []
    for alert in found:
        row = {
            "budget_id": alert.budget_id, "window": alert.window,
            "threshold_ppm": alert.threshold_ppm, "spent_pusd": alert.spent_pusd,
            "limit_pusd": alert.limit_pusd, "reached_us": at_us, "due_us": at_us, "tries": 0,
        }  # fmt: skip
        try:
            with engine.begin() as connection:
                connection.execute(insert(BudgetAlert), [row])
        except IntegrityError:
            continue  # another host was first
        noted.append(alert)
    return tuple(noted)


def take_due(engine: Engine, *, at_us: int) -> tuple[Alert, ...]:
    """Those that nobody has heard yet and nobody is telling; they are the caller's for a while."""
    with reading(engine) as connection:
        waiting = _waiting(connection, at_us)
    taken = []
    for alert in waiting:
        wait_us = min(WAIT_LIMIT_US, LEASE_US << min(alert.tries, 20))
        with engine.begin() as connection:
            claimed = connection.execute(
                _one(alert)
                .where(BudgetAlert.tries == alert.tries, BudgetAlert.told_us.is_(None))
                .values(tries=alert.tries + 1, due_us=at_us + wait_us)
            )
        if claimed.rowcount:
            taken.append(alert)
    return tuple(taken)


def told(engine: Engine, alert: Alert, *, at_us: int) -> None:
    """Somebody heard it: it is not told again."""
    with engine.begin() as connection:
        connection.execute(_one(alert).values(told_us=at_us))


def _reached(
    connection: Connection, thresholds: Mapping[str, Sequence[int]], at_us: int
) -> list[Alert]:
    table, found = BudgetWindow, []
    budgets = select(Budget).where(Budget.retired_us.is_(None), Budget.id.in_(list(thresholds)))
    for budget in connection.execute(budgets).mappings():
        now = window_at(cast("Period", budget["period"]), budget["timezone"], at_us // US_PER_S)
        past = window_at(cast("Period", budget["period"]), budget["timezone"], now.start_s - 1)
        ends = {now.start_s: now.end_s, past.start_s: past.end_s}
        query = select(table.window, table.spent_pusd).where(
            table.budget_id == budget["id"], table.window.in_(list(ends))
        )
        known = select(BudgetAlert.window, BudgetAlert.threshold_ppm).where(
            BudgetAlert.budget_id == budget["id"], BudgetAlert.window.in_(list(ends))
        )
        before = {(window, ppm) for window, ppm in connection.execute(known)}
        for window, spent in connection.execute(query):
            found += [
                Alert(
                    budget["id"], budget["scope"], budget["period"], window, ends[window], ppm,
                    budget["limit_pusd"], spent, budget["hard"], at_us,
                )
                for ppm in thresholds[budget["id"]]
                if spent * PPM >= ppm * budget["limit_pusd"] and (window, ppm) not in before
            ]  # fmt: skip
    return found


def _waiting(connection: Connection, at_us: int) -> list[Alert]:
    table = BudgetAlert
    query = (
        select(
            table.budget_id, Budget.scope, Budget.period, table.window, Budget.timezone,
            table.threshold_ppm, table.limit_pusd, table.spent_pusd, Budget.hard,
            table.reached_us, table.tries,
        )
        .join(Budget, Budget.id == table.budget_id)
        .where(
            table.told_us.is_(None), table.due_us <= at_us,
            table.reached_us > at_us - TOLD_FOR_US,
        )
        .order_by(table.reached_us, table.threshold_ppm)
    )  # fmt: skip
    return [
        Alert(
            budget_id,
            scope,
            period,
            start,
            window_at(cast("Period", period), timezone, start).end_s,
            *rest,
        )
        for budget_id, scope, period, start, timezone, *rest in connection.execute(query)
    ]


def _one(alert: Alert) -> Update:
    return update(BudgetAlert).where(
        BudgetAlert.budget_id == alert.budget_id,
        BudgetAlert.window == alert.window,
        BudgetAlert.threshold_ppm == alert.threshold_ppm,
    )
