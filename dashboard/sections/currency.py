"""Dollars in other currencies, at entered rates with day and source.

The ledger stays in dollars. An old rate is marked at every figure that uses it.
"""

from collections.abc import Container, Sequence
from datetime import date
from fractions import Fraction

import streamlit as st

from dashboard import confirmation, formatting, sidebar, theme
from dashboard.data.reads import DashboardView
from ledger.currencies import FRESH_DAYS, Currency, unknown
from ledger.economics.cost import Exact

CURRENCIES = "currencies"  # the change's name


def lines(view: DashboardView, pusd: Exact) -> list[str]:
    """Return the amount in each currency that has a rate."""
    today = formatting.instant(view.now_us).date()
    return [line(currency, pusd, today) for currency in sidebar.quoted_currencies(view)]


def line(currency: Currency, pusd: Exact, today: date) -> str:
    amount = Fraction(pusd) * currency.per_usd / 10**12
    return f"**{currency.code} {float(amount):,.2f}** ({sidebar.of_rate(currency, today)})"


def show(view: DashboardView) -> None:
    """Draw the rates and a form for a new one."""
    st.subheader("Other currencies", anchor=False)
    confirmation.show_outcome(CURRENCIES)
    known, today = sidebar.quoted_currencies(view), formatting.instant(view.now_us).date()
    if known:
        theme.table(rows(known, today), about="currency")
    else:
        st.caption(
            "Amounts are in dollars. With a rate here, `Money in` in the sidebar offers its "
            "currency."
        )
    desk = confirmation.desk_for(view)
    if desk is None:
        return
    with st.form("currencies-form", border=True):
        first, second, third = st.columns(3, vertical_alignment="bottom")
        code = first.text_input("Currency (ISO 4217)", max_chars=3, placeholder="EUR")
        rate = second.number_input("One dollar is", value=None, format="%.6f")
        day = third.date_input("Rate of the day", value=today, max_value=today)
        source = st.text_input("Who says so", max_chars=200, placeholder="European Central Bank")
        pressed = st.form_submit_button("Enter the rate", icon=":material/currency_exchange:")
        if not pressed:
            return
        quoted = {name.code for name in known}
        if missing := missing_text(code, rate, source, quoted):
            confirmation.fail(CURRENCIES, f"Nothing is entered: {missing}.")
        given = {"currency": code.strip().upper(), "per_usd": f"{rate:.6f}", "day": str(day)}
        done = confirmation.send_change(
            CURRENCIES, desk, "/currencies", **given, source=source.strip()
        )
        said = f"One dollar is {done['says']['per_usd']} {done['name']}, by {done['by']}."
        if (stands := done["in_force"])["day"] > str(day):
            said += f" The newer rate of {stands['day']} stays in force: {stands['per_usd']}."
        confirmation.report_done(CURRENCIES, said)


def missing_text(code: str, rate: float | None, source: str, quoted: Container[str] = ()) -> str:
    """Return what the form still needs; empty if complete. `quoted` currencies have a rate."""
    named = code.strip().upper()
    fault = None if named in quoted else unknown(named)
    needs = [
        (not named, "the currency is empty (EUR, GBP, ...)"),
        (bool(named and fault), f"Currency: {fault}"),
        (rate is None, "what one dollar is, is empty"),
        (rate is not None and rate <= 0, "one dollar is more than 0 of anything"),
        (not source.strip(), "nobody says so: name the source"),
    ]
    return "; ".join(words_ for lacks, words_ in needs if lacks)


def rows(known: Sequence[Currency], today: date) -> list[dict[str, object]]:
    return [
        {
            "currency": name.code,
            "one dollar is": float(name.per_usd),
            "of": name.day,
            "source": name.source,
            "entered by": name.by,
            "stands": f"stale: older than {FRESH_DAYS} days" if name.stale(today) else "fresh",
        }
        for name in known
    ]
