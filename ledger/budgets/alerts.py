"""Budget thresholds that were reached: recorded once per window, sent until delivered.

Any host may check. The table's key decides which host records a threshold. A lease decides which
host sends the alert, and another host takes over when the lease ends. So an alert may arrive twice
(it has an id), but is not lost. Clients choose the values of a tag: the first five values that
reach a threshold get alerts, then the tag's default gets one alert that there are more.

If spending passes several thresholds at once, only the highest is sent (`highest_reached`). A
retired budget gets no alerts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sqlalchemy import Connection, Engine, Update, insert, select, update
from sqlalchemy.exc import IntegrityError

from ledger.budgets.binding import BoundBudgets, BudgetLine, is_bound_by, is_default, scope_of
from ledger.budgets.scopes import valued_tag
from ledger.budgets.windows import Period, window_at
from ledger.database import reading, write_alone
from ledger.money import PPM
from ledger.orm.budgets import BudgetAlertRow, BudgetWindowRow

US_PER_S = 1_000_000
LEASE_US = 30 * US_PER_S  # the time to send an alert, and the first wait after a failure
WAIT_LIMIT_US = 3600 * US_PER_S
VALUES_TOLD = 5  # alerts for values of one tag, per window and threshold
TOLD_FOR_US = 48 * 3600 * US_PER_S  # older alerts are not sent


@dataclass(frozen=True, slots=True)
class Alert:
    """One threshold (parts per million of the limit) that one budget reached in one window."""

    budget_id: str
    scope: str
    period: str
    window: int  # start, epoch seconds
    window_end: int
    threshold_ppm: int
    limit_pusd: int
    spent_pusd: int  # spent and claimed by providers, when the alert was recorded
    hard: bool
    reached_us: int
    tries: int = 0

    @property
    def id(self) -> str:
        return f"{self.budget_id}:{self.window}:{self.threshold_ppm}"


def record_alerts(
    engine: Engine, thresholds: Mapping[str, Sequence[int]], *, at_us: int
) -> tuple[Alert, ...]:
    """Record thresholds reached in the current window or the previous one.

    `thresholds` are parts per million of the limit, by budget. Returns the alerts that this call
    recorded.
    """
    with reading(engine) as connection:
        found = _reached_alerts(connection, thresholds, at_us)
    noted = []
    for alert in found:
        row = {
            "budget_id": alert.budget_id, "window": alert.window,
            "threshold_ppm": alert.threshold_ppm, "spent_pusd": alert.spent_pusd,
            "limit_pusd": alert.limit_pusd, "reached_us": at_us, "due_us": at_us, "tries": 0,
        }  # fmt: skip
        try:
            with engine.begin() as connection:
                connection.execute(insert(BudgetAlertRow), [row])
        except IntegrityError:
            continue  # another host was first
        noted.append(alert)
    return tuple(noted)


def claim_due(engine: Engine, *, at_us: int) -> tuple[Alert, ...]:
    """Claim the alerts that are due and not delivered. The claim is a lease that ends."""
    with reading(engine) as connection:
        waiting = _waiting_alerts(connection, at_us)
    taken = []
    for alert in waiting:
        wait_us = min(WAIT_LIMIT_US, LEASE_US << min(alert.tries, 20))
        with engine.begin() as connection:
            claimed = connection.execute(
                _update_of(alert)
                .where(BudgetAlertRow.tries == alert.tries, BudgetAlertRow.told_us.is_(None))
                .values(tries=alert.tries + 1, due_us=at_us + wait_us)
            )
        if claimed.rowcount:
            taken.append(alert)
    return tuple(taken)


def highest_reached(found: Sequence[Alert]) -> list[tuple[Alert, list[Alert]]]:
    """Return each alert to send, with the lower thresholds of its budget and window.

    One alert covers all thresholds that were passed at once. The alert of a tag's default names its
    threshold, so each of its thresholds is sent.
    """
    told: dict[tuple[str, int, int], list[Alert]] = {}
    for alert in found:
        apart = 0 if valued_tag(alert.scope) is None else alert.threshold_ppm
        told.setdefault((alert.budget_id, alert.window, apart), []).append(alert)
    pairs = []
    for alerts in told.values():
        highest = max(alerts, key=lambda alert: alert.threshold_ppm)
        pairs.append((highest, [alert for alert in alerts if alert is not highest]))
    return pairs


def mark_delivered(engine: Engine, alert: Alert, *, at_us: int) -> None:
    """Mark an alert as delivered, so that it is not sent again."""
    write_alone(engine, _update_of(alert).values(told_us=at_us))


def _reached_alerts(
    connection: Connection, thresholds: Mapping[str, Sequence[int]], at_us: int
) -> list[Alert]:
    budgets = BoundBudgets(connection)
    return [
        alert
        for bound in budgets.in_force()
        if bound.id in thresholds
        for alert in _reached_of(connection, budgets, bound, thresholds[bound.id], at_us)
    ]


def _reached_of(
    connection: Connection,
    budgets: BoundBudgets,
    bound: BudgetLine,
    steps: Sequence[int],
    at_us: int,
) -> Iterator[Alert]:
    """Yield the alerts of a budget's account, or of every account that a default binds."""
    table = BudgetWindowRow
    now = window_at(cast("Period", bound.period), bound.timezone, at_us // US_PER_S)
    past = window_at(cast("Period", bound.period), bound.timezone, now.start_s - 1)
    ends = {now.start_s: now.end_s, past.start_s: past.end_s}
    mine, noted = table.budget_id == bound.id, BudgetAlertRow.budget_id == bound.id
    if is_default(bound.scope):
        mine = is_bound_by(table.budget_id, bound.id)
        noted = is_bound_by(BudgetAlertRow.budget_id, bound.id)
    # Claims reduce a budget just as spending does: requests are refused at the limit of the sum.
    query = select(table.budget_id, table.window, table.spent_pusd, table.claimed_pusd).where(
        mine, table.window.in_(list(ends))
    )
    known = select(
        BudgetAlertRow.budget_id, BudgetAlertRow.window, BudgetAlertRow.threshold_ppm
    ).where(noted, BudgetAlertRow.window.in_(list(ends)))
    before = {(row[0], row[1], row[2]) for row in connection.execute(known)}
    is_valued = valued_tag(bound.scope) is not None
    if is_valued and {(bound.id, window, ppm) for window in ends for ppm in steps} <= before:
        return
    found = [
        Alert(
            account, scope_of(account), bound.period, window, ends[window], ppm,
            bound.limit_pusd, booked + claimed, bound.hard, at_us,
        )
        for account, window, booked, claimed in connection.execute(query).all()
        if budgets.of(account) == bound  # otherwise the account has a budget of its own
        for ppm in steps
        if (booked + claimed) * PPM >= ppm * bound.limit_pusd
        and (account, window, ppm) not in before
    ]  # fmt: skip
    yield from _first_values(found, bound, before) if is_valued else found


def _first_values(
    found: Sequence[Alert], bound: BudgetLine, before: Collection[tuple[str, int, int]]
) -> Iterator[Alert]:
    """Yield the values that spent most, up to `VALUES_TOLD`, and the default for the rest."""
    by_threshold: dict[tuple[int, int], list[Alert]] = {}
    for alert in sorted(found, key=lambda alert: (-alert.spent_pusd, alert.budget_id)):
        by_threshold.setdefault((alert.window, alert.threshold_ppm), []).append(alert)
    for (window, ppm), alerts in by_threshold.items():
        if (bound.id, window, ppm) in before:
            continue
        room = VALUES_TOLD - sum((start, step) == (window, ppm) for _, start, step in before)
        yield from alerts[: max(0, room)]
        for more in alerts[max(0, room) :][:1]:
            yield replace(more, budget_id=bound.id, scope=bound.scope)


def _waiting_alerts(connection: Connection, at_us: int) -> list[Alert]:
    table = BudgetAlertRow
    query = (
        select(
            table.budget_id, table.window, table.threshold_ppm, table.limit_pusd,
            table.spent_pusd, table.reached_us, table.tries,
        )
        .where(
            table.told_us.is_(None), table.due_us <= at_us,
            table.reached_us > at_us - TOLD_FOR_US,
        )
        .order_by(table.reached_us, table.threshold_ppm)
    )  # fmt: skip
    rows = connection.execute(query).all()
    budgets = BoundBudgets(connection, {row[0] for row in rows})
    found = []
    for account, start, ppm, limit, spent, reached_us, tries in rows:
        bound = budgets.of(account)
        if bound is not None and bound.retired_us is None:
            ends = window_at(cast("Period", bound.period), bound.timezone, start).end_s
            told = (account, scope_of(account), bound.period, start, ends, ppm, limit, spent)
            found.append(Alert(*told, bound.hard, reached_us, tries))
    return found


def _update_of(alert: Alert) -> Update:
    return update(BudgetAlertRow).where(
        BudgetAlertRow.budget_id == alert.budget_id,
        BudgetAlertRow.window == alert.window,
        BudgetAlertRow.threshold_ppm == alert.threshold_ppm,
    )
