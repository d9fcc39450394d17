"""Form for budgets: a new budget, another limit, or the end of a budget.

Finance people and admins enter budgets; the gateway checks permission again and validates a scope
like one of the file. Entries apply at once and override the configuration.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import confirmation, formatting, theme
from dashboard.admin_client import AdminClient, AdminRefused, AdminUnavailable
from dashboard.data import entries
from dashboard.data.reads import DashboardView
from ledger.budgets.entered import budget_of
from ledger.budgets.states import BudgetState
from ledger.manual_entries import ManualEntry, entries_in_force, latest_us

BUDGETS = "budgets"  # the change's name
NEW = "a new budget"
ALERTS = (0.5, 0.8, 0.9, 1.0)
USUAL_ALERTS = [0.5, 0.8, 1.0]
MOST_USD = 10**12


def entered(view: DashboardView) -> dict[str, ManualEntry]:
    """Return the current entries by budget; withdrawn entries are omitted."""
    found = entries.entered_budgets(view)
    standing = entries_in_force(found, latest_us(found, view.now_us))
    return {name: entry for name, entry in standing.items() if entry.says is not None}


def show(view: DashboardView, found: Sequence[BudgetState]) -> None:
    """Draw the form, or a note on the command line."""
    confirmation.show_outcome(BUDGETS)
    standing = entered(view)
    _show_ended(standing)
    desk = confirmation.desk_for(view)
    if desk is None:
        st.caption(
            "Finance people and admins who have signed in enter, change and end budgets here; "
            "where the gateway runs it is `breakeven budgets enter SCOPE USD`."
        )
        return
    own = {state.account: state for state in found if state.default is None}
    with st.container(border=True):
        st.markdown("**Enter, change or end a budget**")
        named = st.selectbox("Budget", [NEW, *own], key="budgets-which")
        given = _form(named, own.get(named))
        _offer(desk, given, own, standing)


def _show_ended(standing: Mapping[str, ManualEntry]) -> None:
    for name, entry in sorted(standing.items()):
        said = budget_of(entry)
        if said is not None and said.usd is None:
            st.caption(
                f"{formatting.quote(name)} is ended, by {formatting.quote(entry.actor)}, "
                f"{formatting.moment(entry.recorded_us)}."
            )


def _form(named: str, state: BudgetState | None) -> dict[str, Any]:
    """Draw the form with the current values and return its contents."""
    line = None if state is None else state.line
    first, second, third = st.columns([2, 1, 1], vertical_alignment="bottom")
    scope = first.text_input(
        "Who or what it limits", value="" if line is None else line.scope, max_chars=600,
        disabled=line is not None, placeholder="team:search, user:*, provider:openai, global",
        key=f"budgets-scope-{named}",
    )  # fmt: skip
    period = second.selectbox(
        "Window", ["month", "day"], index=int(line is not None and line.period == "day"),
        disabled=line is not None, key=f"budgets-period-{named}",
    )  # fmt: skip
    usd = third.number_input(
        "Limit, USD", value=None if line is None else line.limit_pusd / 10**12, step=10.0,
        format="%.2f", key=f"budgets-usd-{named}",
    )  # fmt: skip
    first, second = st.columns([1, 2], vertical_alignment="bottom")
    hard = first.checkbox(
        "Hard stop", value=line is None or line.hard, key=f"budgets-hard-{named}",
        help="Requests are refused before the limit is passed; else there are alerts alone.",
    )  # fmt: skip
    alerts = second.multiselect(
        "Alert at", ALERTS, default=USUAL_ALERTS, format_func=formatting.percent,
        key=f"budgets-alerts-{named}",
    )  # fmt: skip
    note = st.text_input("Reason, for later readers (optional)", max_chars=500, key="budgets-note")
    return {
        "scope": scope.strip(), "period": period, "usd": None if usd is None else f"{usd:.6f}",
        "hard": hard, "timezone": None if line is None else line.timezone,
        "alert_at": sorted(alerts), "note": note.strip() or None,
    }  # fmt: skip


def faults(given: Mapping[str, Any]) -> list[str]:
    """Return the errors of the form as text."""
    usd = given["usd"]
    if usd is not None and not 0 <= float(usd) <= MOST_USD:
        return [f"Limit, USD is 0 to {MOST_USD:,}."]
    return []


def _offer(
    desk: AdminClient,
    given: Mapping[str, Any],
    own: Mapping[str, BudgetState],
    standing: Mapping[str, ManualEntry],
) -> None:
    wrong = faults(given)
    for text in wrong:
        st.error(text, icon=":material/edit_note:")
    name = f"{given['scope']}@{given['period']}"
    ready = not wrong and bool(given["scope"]) and given["usd"] is not None
    columns = st.columns(3)
    if columns[0].button(
        "Enter it", key="budgets-enter", icon=":material/account_balance_wallet:",
        disabled=not ready, help=None if ready else "It needs a scope and a limit.",
    ):  # fmt: skip
        confirmation.request_confirmation(BUDGETS, "enter")
    if name in own and columns[1].button("End it", key="budgets-end", icon=":material/block:"):
        confirmation.request_confirmation(BUDGETS, "end")
    if name in standing and columns[2].button(
        "Back to the configuration's", key="budgets-withdraw", icon=":material/undo:"
    ):
        confirmation.request_confirmation(BUDGETS, "withdraw")
    wanted = confirmation.pending_change(BUDGETS)
    if wanted == "enter" and ready:
        _enter(desk, name, given, own.get(name))
    elif wanted in ("end", "withdraw"):
        _take_away(desk, name, given, str(wanted))


def lines_of(given: Mapping[str, Any], state: BudgetState | None) -> list[str]:
    """Return the difference between the form and the active budget."""
    new = _terms(f"{float(given['usd']):.2f}", given["period"], hard=given["hard"])
    if state is None:
        return [f"+{given['scope']}: {new}"]
    line = state.line
    old = _terms(f"{line.limit_pusd / 10**12:.2f}", line.period, hard=line.hard)
    return [] if old == new else [f"-{line.scope}: {old}", f"+{line.scope}: {new}"]


def _terms(usd: str, period: str, *, hard: bool) -> str:
    return f"${usd} a {period}, {'hard stop' if hard else 'alert only'}"


def _enter(
    desk: AdminClient, name: str, given: Mapping[str, Any], state: BudgetState | None
) -> None:
    st.warning(
        "It counts at once, with what its window has seen, and stands over the configuration's:",
        icon=":material/warning:",
    )
    changes = lines_of(given, state)
    if changes:
        st.code("\n".join(changes), language="diff")
    else:
        st.caption("Nothing but the alerts and the note: it says what counts already.")
    if confirmation.is_confirmed(BUDGETS, "Yes, enter it"):
        done = confirmation.send_change(BUDGETS, desk, "/budgets", **given)
        confirmation.report_done(BUDGETS, f"The budget {name} is entered, by {done['by']}.")


def _take_away(desk: AdminClient, name: str, given: Mapping[str, Any], how: str) -> None:
    ended = how == "end"
    st.warning(
        f"{name} limits nobody from now on."
        if ended
        else f"What was entered for {name} is taken back: the configuration's counts again, or "
        "there is none.",
        icon=":material/warning:",
    )
    if confirmation.is_confirmed(BUDGETS, "Yes, end it" if ended else "Yes, take it back"):
        said = {key: given[key] for key in ("scope", "period", "note")}
        done = confirmation.send_change(BUDGETS, desk, f"/budgets/{how}", **said)
        what = "is ended" if ended else "is the configuration's again"
        confirmation.report_done(BUDGETS, f"The budget {name} {what}, by {done['by']}.")


def show_overridden(view: DashboardView) -> None:
    """Draw the file's limits next to entered ones; the gateway knows the file."""
    desk = confirmation.desk_for(view)
    if desk is None or not entered(view):
        return
    try:
        found = desk.get("/budgets/terms")["data"]
    except (AdminRefused, AdminUnavailable) as error:
        st.caption(f"What the configuration says of them is not known: {error}")
        return
    table = [
        {
            "budget": line["budget"],
            "entered": _limit(line["entered"]),
            "in the file": _limit(line["configured"]),
            "by": line["entered"]["by"],
            "entered at": formatting.moment(line["entered"]["entered_us"]),
            "why": line["entered"]["note"] or "",
        }
        for line in found
        if line["entered"] is not None
    ]
    st.subheader("Entered over the configuration", anchor=False)
    theme.table(table, about="budget")


def _limit(terms: Mapping[str, Any] | None) -> str:
    if terms is None:
        return "none"
    return "ended" if terms["limit_usd"] is None else f"${float(terms['limit_usd']):,.2f}"
