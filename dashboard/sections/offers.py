"""Offers: GPU prices and reserved API capacity, each with source and day.

Signed-in finance people and admins enter them here, singly or GPUs from a file.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import streamlit as st

from dashboard import confirmation, formatting, theme
from dashboard.admin_client import AdminClient
from dashboard.data import entries, reads
from dashboard.data.reads import DashboardView
from dashboard.figures import shown_amount
from ledger.csvtable import CsvTableError
from ledger.fleet.entered_offers import gpu_prices
from ledger.fleet.gpu_price_file import COLUMNS, KINDS, GpuPriceFileError, parse_gpu_prices
from ledger.fleet.market import GpuOffer
from ledger.manual_entries import ManualEntry, entries_in_force, latest_us
from ledger.money import usd_to_pusd

OFFERS, RESERVED = "offers", "reserved"  # the changes' names
TERMS = ("month", "hour", "year")
NOT_KNOWN = "enter"


def show(view: DashboardView) -> None:
    """Draw GPU prices and offers, and forms for new ones."""
    st.subheader("Prices of GPUs", anchor=False)
    confirmation.show_outcome(OFFERS)
    known = reads.market(view)
    entered = entries.gpu_entries(view)
    if not known:
        st.caption(
            "The catalogue is written by a gateway's start; none has started on this ledger."
        )
    else:
        theme.table(gpu_rows(known, entered, view.now_us), about="rate")
    desk = confirmation.desk_for(view)
    if desk is not None and known:
        _gpu_form(desk, view, [offer.name for offer in known])
        _file_form(desk)
    st.subheader("Reserved API capacity", anchor=False)
    confirmation.show_outcome(RESERVED)
    if view.viewer.sees_house:
        _show_reserved(view)
    if desk is not None:
        _reserved_form(desk, view)


def gpu_rows(
    known: Sequence[GpuOffer], entered: Sequence[ManualEntry], now_us: int
) -> list[dict[str, Any]]:
    """Return a row for every GPU, also without a price."""
    spot = gpu_prices(entered, now_us, "spot")
    return [
        {
            "GPU": offer.name,
            "USD an hour": _range(offer),
            "spot": _amount(spot[offer.name][0].pusd) if offer.name in spot else NOT_KNOWN,
            "source": offer.price_source or "",
            "of": "" if offer.price_seen is None else str(offer.price_seen),
        }
        for offer in known
    ]


def _range(offer: GpuOffer) -> str:
    low, high = offer.low_pusd_per_hour, offer.high_pusd_per_hour
    if low is None:
        return NOT_KNOWN
    return _amount(low) if high in (None, low) else f"{_amount(low)} to {_amount(high or low)}"


def _amount(pusd: int) -> str:
    return formatting.money(pusd)


def _gpu_form(desk: AdminClient, view: DashboardView, names: list[str]) -> None:
    today = formatting.instant(view.now_us).date()
    with st.form("gpu-price-form", border=True):
        first, second, third, fourth = st.columns(4, vertical_alignment="bottom")
        gpu = first.selectbox("GPU", names, key="gpu-price-gpu")
        usd = second.number_input("USD an hour of one", value=None, format="%.4f")
        kind = third.selectbox(
            "Paid", KINDS, key="gpu-price-kind",
            help="`spot`: hours that can be taken away; they stay apart.",
        )  # fmt: skip
        day = fourth.date_input("Price of the day", value=today, max_value=today)
        source = st.text_input("Who states the price", max_chars=200, placeholder="quote 2026-17")
        if not st.form_submit_button("Enter the price", icon=":material/price_change:"):
            return
        if usd is None or usd <= 0 or not source.strip():
            confirmation.fail(OFFERS, "Nothing is entered: it needs a price above 0 and a source.")
        row = {"gpu": gpu, "usd_per_hour": f"{usd:.6f}", "day": str(day), "kind": kind,
               "source": source.strip()}  # fmt: skip
        done = confirmation.send_change(OFFERS, desk, "/gpu-prices", prices=[row])
        confirmation.report_done(OFFERS, f"The price of {gpu} is entered, by {done['by']}.")


def _file_form(desk: AdminClient) -> None:
    file = st.file_uploader(
        f"Prices as CSV: {', '.join(COLUMNS)}, kind", type="csv", key="gpu-file"
    )
    if file is None:
        return
    try:
        rows = parse_gpu_prices(file.getvalue(), file.name)
    except (GpuPriceFileError, CsvTableError) as error:
        for line in str(error).splitlines():
            st.error(formatting.quote(line), icon=":material/edit_note:")
        return
    if st.button(f"Enter {formatting.plural(len(rows), 'price')}", key="gpu-file-enter"):
        done = confirmation.send_change(OFFERS, desk, "/gpu-prices", prices=rows)
        said = f"{formatting.plural(len(rows), 'price')} of GPUs entered, by {done['by']}."
        confirmation.report_done(OFFERS, said)


def _show_reserved(view: DashboardView) -> None:
    found = entries.reserved(view)
    standing = entries_in_force(found, latest_us(found, view.now_us))
    table = reserved_rows([entry for entry in standing.values() if entry.says is not None])
    if not table:
        st.caption(
            "None is entered. With one here, the verdict weighs units by the hour beside GPUs and "
            "tokens, for what a pool sends to that API."
        )
        return
    theme.table(table, about="options")


def reserved_rows(found: Sequence[ManualEntry]) -> list[dict[str, Any]]:
    """Return a row for every current offer."""
    return [
        {
            "target": entry.name,
            "USD an hour of a unit": shown_amount(usd_to_pusd(Decimal(entry.says["usd_per_hour"]))),
            "tokens a minute of a unit": entry.says["tokens_per_minute"],
            "least units": entry.says["least_units"],
            "in steps of": entry.says["step"],
            "term": entry.says["term"],
            "source": entry.says["source"],
            "of": entry.says["day"],
            "entered by": entry.actor,
        }
        for entry in sorted(found, key=lambda item: item.name)
        if entry.says is not None
    ]


def _reserved_form(desk: AdminClient, view: DashboardView) -> None:
    today = formatting.instant(view.now_us).date()
    with st.form("reserved-form", border=True):
        first, second, third = st.columns([2, 1, 1], vertical_alignment="bottom")
        target = first.text_input("Target", placeholder="openai/gpt-4o", max_chars=200)
        usd = second.number_input("USD an hour of a unit", value=None, format="%.4f")
        tokens = third.number_input("Tokens a minute of a unit", value=None, step=100, min_value=1)
        columns = st.columns(4, vertical_alignment="bottom")
        least = columns[0].number_input("Least units", value=1, min_value=1, step=1)
        step = columns[1].number_input("In steps of", value=1, min_value=1, step=1)
        term = columns[2].selectbox("Shortest term", TERMS, key="reserved-term")
        day = columns[3].date_input("Offer of the day", value=today, max_value=today)
        source = st.text_input("Who offers it", max_chars=200, placeholder="quote 2026-18")
        if not st.form_submit_button("Enter the offer", icon=":material/sell:"):
            return
        if not target.strip() or not usd or not tokens or not source.strip():
            words = "it needs a target, a price above 0, a unit's tokens and a source"
            confirmation.fail(RESERVED, f"Nothing is entered: {words}.")
        done = confirmation.send_change(
            RESERVED, desk, "/reserved", target=target.strip(), usd_per_hour=f"{usd:.6f}",
            tokens_per_minute=int(tokens), least_units=int(least), step=int(step), term=term,
            day=str(day), source=source.strip(),
        )  # fmt: skip
        said = f"{done['name']} is offered, by {done['by']}; the verdict weighs it from now on."
        confirmation.report_done(RESERVED, said)
