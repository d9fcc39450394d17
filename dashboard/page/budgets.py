"""Budgets page: every budget's window, spent, held, claimed and left, and its forecast."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import budgets
from dashboard.data import entries
from dashboard.data.reads import DashboardView
from dashboard.figures import money_columns, shown_amount, time_column
from dashboard.sections import budget_form
from ledger.budgets.states import BudgetState
from ledger.manual_entries import ManualEntry

DRAWN = 24  # maximum number of readable bars
GLANCED = 4  # rows of the first page's card
PPM = 10**6


def show(view: DashboardView) -> None:
    found = entries.budgets(view)
    if not found:
        st.info(
            "No budget is in force. A budget limits what a team, user, key, model or all together "
            "may spend in a day or a month. People of finance enter budgets here; in the "
            "configuration it is `budgets: [{scope: team:search, usd: 500, period: month, "
            'hard: true}]`. `scope: "user:*"` gives a budget to every user.',
            icon=":material/account_balance_wallet:",
        )
        budget_form.show(view, found)
        return
    spent = rank_budgets(_single(found), view.now_us)
    _summary(spent, view.now_us)
    if spent:
        theme.chart(budgets.bars(records(spent[:DRAWN], view.now_us)), about="budget")
        more = ""
        if len(spent) > DRAWN:
            more = f" The {DRAWN} nearest to their limits of {len(spent)}; all are in the table."
        st.caption(
            "Each bar is a budget's present window; the line is its limit, the amber tick where "
            f"the window ends if the rest goes as it went so far.{more} Budgets count what "
            "requests cost: APIs as booked, own engines by their seconds. Idle time and ops of own "
            "hardware are in no budget; Spend's total has them."
        )
        _table(spent, view.now_us, budget_form.entered(view))
    _defaults([state for state in found if state.is_default])
    _values([state for state in found if state.is_value], view.now_us)
    budget_form.show_overridden(view)
    budget_form.show(view, found)


def show_glance(view: DashboardView) -> None:
    """Draw a card with the budgets closest to their limits, for the first page."""
    found = entries.budgets(view)
    spent = rank_budgets(_single(found), view.now_us)
    if not spent:
        more = "A budget limits what a team, user, key or model may spend."
        theme.card("Budgets", theme.big("No budget", size="mid"), theme.small(more), about="budget")
        return
    over, ahead, calm = _group_budgets(spent, view.now_us)
    head = f"{len(calm)} of {formatting.plural(len(spent), 'budget')} within limits"
    tone = "be-loss" if over or ahead else ""
    rows = [
        (
            f"{state.scope}, this {state.line.period}",
            f"{formatting.percent(_share(state.used_pusd, state))} of "
            + formatting.money(state.line.limit_pusd),
            theme.LOSS if state in over else theme.API if state in ahead else theme.OWN,
        )
        for state in spent[:GLANCED]
    ]
    told = [f"**{formatting.plural(len(over), 'budget')}** with nothing left."] if over else []
    if ahead:
        told.append(f"**{formatting.plural(len(ahead), 'budget')}** forecast over the limit.")
    theme.card(
        "Budgets", theme.big(head, tone=tone, size="mid"), theme.rows(*rows), theme.small(*told),
        about="budget",
    )  # fmt: skip


def _single(found: Sequence[BudgetState]) -> list[BudgetState]:
    """Return the budgets with a limit of their own; tag values are shown with their default."""
    return [state for state in found if not (state.is_default or state.is_value)]


def rank_budgets(found: Sequence[BudgetState], at_us: int) -> list[BudgetState]:
    """Return budgets by the largest share of their limit, now or at the window's end."""
    return sorted(found, key=lambda state: (-_worst(state, at_us), state.account))


def _worst(budget_state: BudgetState, at_us: int) -> float:
    return _share(max(budget_state.used_pusd, budget_state.forecast_pusd(at_us) or 0), budget_state)


def _share(pusd: int, budget_state: BudgetState) -> float:
    limit = budget_state.line.limit_pusd
    return pusd / limit if limit else 2.0 * (pusd > 0)


def records(found: Sequence[BudgetState], at_us: int) -> list[dict[str, Any]]:
    """Return the bars of each budget, in shares of its limit."""
    made = []
    for state in found:
        forecast = state.forecast_pusd(at_us)
        told = "too early in the window" if forecast is None else formatting.money(forecast)
        name = f"{state.scope}, {state.line.period}"
        whole = {"name": name, "limit": formatting.money(state.line.limit_pusd), "told": told}
        spent = _share(state.spent_pusd, state)
        held = _share(state.spent_pusd + state.held_pusd, state)
        used = _share(state.used_pusd, state)
        ahead = None if forecast is None else _share(forecast, state)
        for kind, low, high, pusd, tick in (
            (budgets.SPENT, 0.0, min(spent, 1.0), state.spent_pusd, ahead),
            (budgets.HELD, min(spent, 1.0), min(held, 1.0), state.held_pusd, None),
            (budgets.CLAIMED, min(held, 1.0), min(used, 1.0), state.claimed_pusd, None),
            (budgets.OVER, 1.0, used, max(0, -state.remaining_pusd), None),
        ):
            if tick is not None or high > low or kind == budgets.SPENT:
                made.append(
                    {**whole, "kind": kind, "low": low, "high": max(low, high),
                     "shown": formatting.money(pusd), "forecast": tick}
                )  # fmt: skip
    return made


def _summary(spent: Sequence[BudgetState], at_us: int) -> None:
    over, ahead, calm = _group_budgets(spent, at_us)
    columns = st.columns(3)
    for column, title, group, tone in (
        (columns[0], "Exhausted", over, "be-loss" if over else ""),
        (columns[1], "Forecast over their limit", ahead, "be-loss" if ahead else ""),
    ):
        with column:
            names = [f"{state.scope} ({state.line.period})" for state in group[:3]]
            names += [f"and {len(group) - 3} more"] if len(group) > 3 else []
            theme.card(
                title, theme.big(formatting.plural(len(group), "budget"), tone=tone, size="mid"),
                theme.small(*(names or ["none"])), about="budget",
            )  # fmt: skip
    with columns[2]:
        told = sum(len(state.alerts) for state in spent)
        theme.card(
            "Within their limits",
            theme.big(formatting.plural(len(calm), "budget"), size="mid"),
            theme.small(f"{formatting.plural(told, 'alert')} in the present windows"),
            about="budget",
        )


def _group_budgets(
    spent: Sequence[BudgetState], at_us: int
) -> tuple[list[BudgetState], list[BudgetState], list[BudgetState]]:
    """Return exhausted budgets, those forecast over their limits, and the others."""
    groups: tuple[list[BudgetState], ...] = ([], [], [])
    for state in spent:
        ahead = (state.forecast_pusd(at_us) or 0) > state.line.limit_pusd
        groups[0 if state.remaining_pusd <= 0 else 1 if ahead else 2].append(state)
    over, coming, calm = groups
    return over, coming, calm


def _table(spent: Sequence[BudgetState], at_us: int, entered: Mapping[str, ManualEntry]) -> None:
    rows = [row(state, at_us, entered.get(state.line.id)) for state in spent]
    for name in ("alerts", "entered by"):  # leaves space for the calendar column
        if not any(line[name] for line in rows):
            rows = [{key: value for key, value in line.items() if key != name} for line in rows]
    st.subheader("Every budget", anchor="every")
    theme.table(rows, about="budget", column_config=_columns(rows))


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    columns = {formatting.zoned("window ends"): time_column()}
    for name in ("limit", "spent", "held", "claimed", "left", "forecast"):
        columns |= money_columns(rows, (name,))  # each column has its own precision
    return columns


def row(budget_state: BudgetState, at_us: int, entry: ManualEntry | None = None) -> dict[str, Any]:
    forecast = budget_state.forecast_pusd(at_us)
    return {
        "budget": budget_state.scope,
        "window": budget_state.line.period,
        "left": shown_amount(budget_state.remaining_pusd),  # first: a phone shows few columns
        "limit": shown_amount(budget_state.line.limit_pusd),
        "spent": shown_amount(budget_state.spent_pusd),
        "held": shown_amount(budget_state.held_pusd),
        "claimed": shown_amount(budget_state.claimed_pusd),
        "forecast": None if forecast is None else shown_amount(forecast),
        formatting.zoned("window ends"): formatting.instant(budget_state.window.end_s * 10**6),
        "at the limit": "hard stop" if budget_state.line.hard else "alert only",
        "alerts": ", ".join(formatting.percent(ppm / PPM) for ppm in budget_state.alerts),
        "limit from": "own" if budget_state.default is None else f"default {budget_state.default}",
        "entered by": "" if entry is None else entry.actor,
        "calendar": budget_state.line.timezone,
    }


def _defaults(found: Sequence[BudgetState]) -> None:
    if not found:
        return
    st.subheader("Defaults", anchor=False)
    for state in found:
        bound = state.bound
        accounts, exhausted = (0, 0) if bound is None else (bound.accounts, bound.exhausted)
        over = f", **{exhausted:,}** of them all that they may" if exhausted else ""
        st.markdown(
            f"* `{state.scope}`: **{formatting.money(state.line.limit_pusd)}** "
            f"a {state.line.period} for each "
            f"without a budget of their own; {accounts:,} of them spent in this "
            f"window{over}.".replace("$", r"\$")
        )


def _values(found: Sequence[BudgetState], at_us: int) -> None:
    """Draw the tag values with the least left, because there may be thousands."""
    if not found:
        return
    rows = [row(state, at_us) for state in rank_budgets(found, at_us)]
    st.caption("Of the values of tags, those with the least left:")
    theme.table(rows, about="budget", column_config=_columns(rows))
