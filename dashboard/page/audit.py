"""Reconciliation and audit page: bills compared with the ledger, checks, change log.

Bills are compared by day, model and project, each difference with possible causes. Permitted
viewers import and post them (`billing`); otherwise `breakeven invoices` does. The stored result of
the last `ledger verify` is shown, and the checks can be run from here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import streamlit as st
from sqlalchemy.exc import DBAPIError

from dashboard import formatting, theme
from dashboard.charts import bills
from dashboard.data import invoices, reads
from dashboard.data.invoices import InvoiceDetail
from dashboard.data.reads import DashboardView
from dashboard.figures import dollars, money_columns, shown_amount, time_column
from dashboard.sections import billing
from ledger.invoices.bookings import GPU
from ledger.invoices.books import ImportedInvoice
from ledger.invoices.files import InvoiceLine
from ledger.invoices.reconcile import (
    BookedCost,
    DifferenceCause,
    ReconciliationLine,
    by_day_and_model,
    by_key,
    model_of,
)
from ledger.seals.audit_log import AuditEntry
from ledger.verify.checks import Finding

CHANGES = 200
RUNS = 5
EMPTY: tuple[object, ...] = (None, "", "[]", "{}")  # values of a new row that are not shown
YEARS_US = 10**15  # larger values are times, not durations
SHORT = 80  # characters of a value
CAUSES = {
    DifferenceCause.ROUNDING: "rounding: the bill has fewer places",
    DifferenceCause.CANCELLED: "answers cut short, booked by estimate or bound",
    DifferenceCause.LOST: "a worker died; its attempts stand at their bounds",
    DifferenceCause.RETRIES: "failed tries, booked at nothing",
    DifferenceCause.UNPRICED: "some of it has no price in the books",
    DifferenceCause.DAY: "the neighbouring day differs as much the other way",
    DifferenceCause.NOT_IN_BOOKS: "traffic that did not pass the gateway, or another name",
    DifferenceCause.NOT_INVOICED: "not on this bill",
    DifferenceCause.POSTED: "posted: the day's adjustments bring the books to the bill",
    DifferenceCause.UNEXPLAINED: "unexplained",
}
CHECKS = {
    "postings_balance": "every entry balances",
    "entries_have_a_cause": "every entry has its cause",
    "attempts_are_posted": "every attempt is posted once, at its cost",
    "claims_are_posted": "what providers claim beyond a cost is posted as disputed",
    "attempts_are_whole": "every attempt is settled completely",
    "costs_rederive": "costs follow from tokens and prices",
    "holds_end": "every hold ends",
    "grants_are_within_limits": "no budget was overspent",
    "grants_are_spent": "what was lent of budgets is what was spent of them",
    "totals_equal_sums": "budgets' totals are the sums of their holds",
    "holds_follow_attempts": "every hold is its attempt's",
    "windows_count_claims": "what claims narrow budgets by is what each counts",
    "windows_are_as_declared": "budgets' windows and limits are those that were declared",
    "legs_add_up": "Parts of requests that took two engines add up",
    "hours_add_up": "GPU hours add up to their bills",
    "hours_hold_every_settle": "GPU hours hold every answer",
    "nothing_is_quarantined": "no record waits for a person",
    "journals_are_whole": "no journal lacks records that nobody has acknowledged",
    "seals_hold": "nothing sealed was edited",
    "annexes_hold": "nothing of cache hits, routes or what seals leave out was edited",
    "registers_hold": "nothing of contracts, prices, policies, keys or engines was edited",
    "retirements_hold": "what was retired is what was sealed",
    "condensings_hold": "what was condensed adds up to what was sealed",
    "sums_are_the_rows": "sums by hour and day are those of the rows",
    "cells_are_named": "sums are of the teams, models, tags and keys that they name",
    "stored_bytes_add_up": "what stored objects take is counted right",
}


def show(view: DashboardView) -> None:
    st.subheader("Ledger checks", anchor=False)
    _show_verified(view)
    st.subheader("Bills beside the books", anchor="bill")
    _bills(view)
    st.subheader("Adjustments", anchor=False)
    _adjustments(view)
    st.subheader("Who changed what", anchor=False)
    _changes(view)


def _show_verified(view: DashboardView) -> None:
    runs = reads.verifications(view, RUNS)
    if runs:
        last = runs[0]
        text = "All checks hold" if last.is_clean else formatting.plural(last.found, "finding")
        when = (
            f"{formatting.moment(last.at_us)} ({formatting.ago(last.at_us, view.now_us)}), "
            f"{last.actor}"
        )
        theme.card(
            "The last ledger verify",
            theme.big(text, tone="be-gain" if last.is_clean else "be-loss", size="mid"),
            theme.small(
                f"**{len(last.checks)}** checks, {when}",
                *(
                    f"Before: {formatting.moment(run.at_us)}, "
                    + ("all held" if run.is_clean else formatting.plural(run.found, "finding"))
                    for run in runs[1:]
                ),
            ),
            about="verify",
        )
        _findings(last.findings)
        with st.expander("What is checked"):
            st.markdown(
                "\n".join(f"* {CHECKS.get(check, check)} (`{check}`)" for check in last.checks)
            )
    else:
        st.info(
            "No result of `breakeven ledger verify` is kept. Run it (best every day, by cron), or "
            "run the checks from here.",
            icon=":material/rule:",
        )
    _checked_here(view)


def _checked_here(view: DashboardView) -> None:
    """Draw a button for the checks; their findings stay until the next run."""
    pressed = st.button(
        "Run the checks now",
        icon=":material/rule:",
        key="verify",
        help="Reads all books; long where they are large.",
    )
    if pressed:
        with st.spinner("Checking all books ..."):
            st.session_state["checked"] = view.url, view.now_us, reads.verify_now(view)
    url, at_us, result = st.session_state.get("checked", (None, 0, None))
    if result is None or url != view.url:
        return
    when = f"{formatting.ago(at_us, view.now_us)}, from here"
    if result.is_clean:
        st.success(f"{len(result.checks)} checks over all books {when}: all hold.")
        return
    st.error(f"{formatting.plural(len(result.findings), 'finding')} {when}.")
    _findings(result.findings)


def _findings(findings: Sequence[Finding]) -> None:
    if findings:
        table = [
            {
                "check": CHECKS.get(finding.check, finding.check),
                "where": finding.subject,
                "what": finding.message,
            }
            for finding in findings
        ]
        theme.table(table, about="verify")


def _bills(view: DashboardView) -> None:
    known = invoices.bills(view)
    survey = reads.spending(view)
    apis = {cell.target for cell in survey.cells if cell.backend == "api"}
    billing.show_import_form(
        view,
        invoices.senders(view, tuple(sorted(apis))),
        [contract.pool for contract in survey.contracts],
    )
    if not known:
        st.info(
            "No bill is imported. `breakeven invoices import FILE --provider openai` reads "
            "OpenAI's costs, a CSV of days and amounts, or a cloud's FOCUS file (`--pool NAME` "
            "for GPUs); "
            "then every difference stands here.",
            icon=":material/receipt_long:",
        )
        return
    numbers = {name.id: name for name in known}
    number = st.selectbox(
        "Bill", list(numbers), format_func=lambda item: invoice_name(numbers[item]), key="bill"
    )
    found = at_its_pool(invoices.bill(view, number))
    _bill(view, found)


def invoice_name(invoice: ImportedInvoice) -> str:
    state = "posted" if invoice.posted_us is not None else "not posted"
    total = formatting.money(invoice.total_pusd)
    days = f"{invoice.first_day} to {invoice.last_day}"
    return f"{invoice.id}: {invoice.party}, {days}, {total}, {state}"


def at_its_pool(found: InvoiceDetail) -> InvoiceDetail:
    """Return a GPU bill with all lines assigned to its pool, so that days are compared."""
    if not found.invoice.party.startswith(GPU):
        return found
    pool = found.invoice.party.removeprefix(GPU)
    return replace(found, lines=tuple(replace(line, item=pool) for line in found.lines))


def _bill(view: DashboardView, found: InvoiceDetail) -> None:
    days = by_day_and_model(found.lines, found.booked, places=found.invoice.places)
    booked = sum(booking.booked_pusd for booking in found.booked)
    difference = found.invoice.total_pusd - booked
    first, second, third = st.columns(3)
    with first:
        theme.card(
            "Invoiced",
            theme.big(formatting.money(found.invoice.total_pusd), size="mid"),
            about="bill",
        )
    with second:
        theme.card("In the books", theme.big(formatting.money(booked), size="mid"), about="bill")
    with third:
        theme.card(
            "Difference",
            theme.big(formatting.money(difference, sign=True), size="mid"),
            theme.small(*_differing_days(days)),
            about="bill",
        )
    billing.show_state(view, found, difference)
    records = [
        {"day": str(day), "kind": kind, "usd": dollars(sum(getattr(row, name) for row in rows))}
        for day, rows in days.items()
        for kind, name in (
            (bills.INVOICED, "invoiced_pusd"),
            (bills.BOOKED, "booked_pusd"),
        )
    ]
    if records:
        theme.chart(bills.compare_chart(records), about="bill")
    tabs = st.tabs(["By day and model", "By model", "By project or team"])
    with tabs[0]:
        listed = [(day, row) for day, rows in days.items() for row in rows]
        listed.sort(key=lambda pair: -abs(pair[1].difference_pusd))  # equal ones stay by day
        # The difference is in a column that a phone shows.
        rows = [(day, _line_row(row, "model")) for day, row in listed]
        _rows([{"day": day, "difference": row["difference"], **row} for day, row in rows])
    for tab, name, keys in (
        (tabs[1], "model", (_model_of_line, _model_of_booked)),
        (tabs[2], "project", (_project_of_line, _project_of_booked)),
    ):
        with tab:
            _rows(_keyed_rows(found, name, keys))


def _differing_days(days: Mapping[date, Sequence[ReconciliationLine]]) -> list[str]:
    """Return a text on differences in both directions, which the sum may hide."""
    differences = [sum(row.difference_pusd for row in rows) for rows in days.values()]
    more = [pusd for pusd in differences if pusd > 0]
    less = [pusd for pusd in differences if pusd < 0]
    if not more and not less:
        return [f"All {formatting.plural(len(days), 'day')} agree."] if days else []
    parts = [
        f"{formatting.money(sum(pusd), sign=True)} on {formatting.plural(len(pusd), 'day')}"
        for pusd in (more, less)
        if pusd
    ]
    agree = len(days) - len(more) - len(less)
    verb = "agrees" if agree == 1 else "agree"
    return [f"{', '.join(parts)}; {formatting.plural(agree, 'day')} {verb}."]


def _keyed_rows(
    found: InvoiceDetail,
    name: str,
    keys: tuple[Callable[[InvoiceLine], str], Callable[[BookedCost], str]],
) -> list[dict[str, Any]]:
    rows = [_line_row(row, name) for row in by_key(found.lines, found.booked, keys)]
    return [
        {key: cell for key, cell in row.items() if key != "may be explained by"} for row in rows
    ]


def _model_of_line(line: InvoiceLine) -> str:
    return model_of(line.item)


def _model_of_booked(booked_cost: BookedCost) -> str:
    return model_of(booked_cost.model)


def _project_of_line(line: InvoiceLine) -> str:
    return line.project or "(none said)"


def _project_of_booked(booked_cost: BookedCost) -> str:
    return booked_cost.project


def _line_row(row: ReconciliationLine, name: str) -> dict[str, Any]:
    return {
        name: row.key or "(none said)",
        "invoiced": shown_amount(row.invoiced_pusd),
        "booked": shown_amount(row.booked_pusd),
        "difference": shown_amount(row.difference_pusd),
        "attempts": row.attempts,
        "may be explained by": "; ".join(CAUSES[cause] for cause in row.causes),
    }


def _rows(rows: list[dict[str, Any]]) -> None:
    form = money_columns(rows, ("invoiced", "booked", "difference"))
    theme.table(rows, about="bill", column_config=form)


def _adjustments(view: DashboardView) -> None:
    found = invoices.adjustments(view)
    if not found:
        st.caption(
            "None in this period: no bill that differed from the books was posted for its days."
        )
        return
    rows = [
        {
            "day (UTC)": formatting.instant(adjustment.start_us).date(),
            "owed to": adjustment.party,
            "amount": shown_amount(adjustment.pusd),
        }
        for adjustment in found
    ]
    total = formatting.money(sum(adjustment.pusd for adjustment in found), sign=True)
    columns = money_columns(rows, ("amount",))
    theme.table(rows, about="bill", column_config=columns)
    st.caption(f"{total} in all, on nobody's expense: no team is charged for them.")


def _changes(view: DashboardView) -> None:
    try:
        found = reads.changes(view, CHANGES)
    except DBAPIError:
        found = []
    if not found:
        st.info(
            "Nothing is entered yet. The ledger writer enters contracts, prices, policies, "
            "overrides, budgets and keys some seconds after they change.",
            icon=":material/history:",
        )
        return
    registers = sorted({entry.register for entry in found})
    only = st.pills("Registers", registers, selection_mode="multi", key="registers",
                    format_func=lambda name: name.replace("_", " "))  # fmt: skip
    rows = [change_row(entry) for entry in found if not only or entry.register in only]
    theme.table(rows, about="change", column_config={formatting.zoned("entered"): time_column()})
    st.caption(
        f"The newest {len(found)} entries of the log of changes; `breakeven ledger changes` has "
        "all. Secrets are never in it; `verify` finds any edit."
    )


def change_row(audit_entry: AuditEntry) -> dict[str, Any]:
    told = "; ".join(
        f"{_column_label(name)}: {_short(name, new)}"
        if old is None
        else f"{_column_label(name)}: {_short(name, old)} to {_short(name, new)}"
        for name, old, new in audit_entry.fields
        if old is not None or new not in EMPTY
    )
    return {
        formatting.zoned("entered"): formatting.instant(audit_entry.at_us),
        "by": audit_entry.actor or "system",
        "what": f"{audit_entry.register.replace('_', ' ')} {audit_entry.row[:16]}",
        "event": audit_entry.event,
        "from and to": told,
    }


def _column_label(name: str) -> str:
    """Return a ledger column's name without its unit."""
    name = name.removesuffix("_us").removesuffix("_pusd").removeprefix("pusd_")
    return name.replace("_pusd_", " ").replace("_", " ")


def _short(name: str, value: object) -> str:
    """Return a value as text: times formatted, amounts as money."""
    text = "nothing" if value is None else str(value)
    if isinstance(value, int) and name.endswith("_us") and value > YEARS_US:
        text = formatting.moment(value, "%d %b %Y %H:%M:%S")
    elif isinstance(value, int) and "pusd" in name:
        text = formatting.money(value).exact
    return text if len(text) <= SHORT else f"{text[:SHORT]}..."
