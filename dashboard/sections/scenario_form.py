"""Scenario form: the verdict's sheet with entered values, judged by the same function.

Every field, the scenario's name and its pool are in the URL: a bookmark saves a scenario, and the
URL shares it. Each field starts with the sheet's value; changed fields are named.
"""

from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import fields, formatting
from dashboard.data.reads import DashboardView
from dashboard.scenario import ScenarioChange, changed
from dashboard.sections import verdict
from dashboard.sections.saved_scenarios import scenarios
from ledger.economics.assumptions import PoolAssumptions
from ledger.economics.fleet_verdict import FleetVerdict
from ledger.economics.verdict_text import sentence

BIND: Any = "query-params"
WHOSE = ("pool",)  # in the URL in addition to the changed fields
DAY_HOURS = 24
PUSD = 10**12


def show_scenario(view: DashboardView, found: FleetVerdict, pool: str) -> None:
    """Draw the fields and the verdict with their values; nothing for a pool without a verdict."""
    judged = {line.pool: line for line in found.judged}
    if pool not in judged:
        return
    st.subheader("What if", anchor=False)
    name = st.text_input(
        "Name of this scenario", key="scenario", bind=BIND, max_chars=60,
        placeholder="as it is today",
    )  # fmt: skip
    change = _change(judged[pool].assumptions, found, pool)
    scenarios(view, "breakeven", lambda name: name.startswith("x-") or name in WHOSE)
    now = changed(found, pool, ScenarioChange())
    after = changed(found, pool, change)
    names = change.names
    if not names:
        st.caption("Change a value: the verdict with it appears here, beside today's.")
        return
    title = name or f"With your changes: {', '.join(names)}"
    verdict.show_answer(after, question=f"{title} (pool {pool})")
    text = f"Without them: {sentence(now, verdict.read_money)}"
    st.caption(formatting.quote(text))
    verdict.show_options(after)
    st.caption(
        "The address of this page is the scenario: bookmark it, send it to share it, or save it by "
        "name."
    )


def _change(assumptions: PoolAssumptions, found: FleetVerdict, pool: str) -> ScenarioChange:
    first = st.columns(4, vertical_alignment="bottom")
    noun = assumptions.noun[0]
    rate_now = _usd(assumptions.pusd_per_hour)
    rate = fields.number(
        first[0], f"{noun} rate, USD an hour", (0.0, 1e6),
        fields.default_following("x-rate", rate_now), step=0.05, format="%.3f", key="x-rate",
        bind=BIND,
    )  # fmt: skip
    hours = fields.number(
        first[1], "Ops, hours a week", (0.0, 500.0), None, step=0.5, key="x-ops", bind=BIND,
        placeholder=_ops_text(assumptions),
    )  # fmt: skip
    each = fields.number(
        first[2], "Ops, USD an hour", (0.0, 1000.0), None, step=5.0, key="x-ops-rate", bind=BIND,
        placeholder="cost of an ops hour",
    )  # fmt: skip
    days = fields.number(
        first[3], "Month, days", (28, 31), round(float(found.sheet.month_hours) / DAY_HOURS),
        key="x-month", bind=BIND,
    )  # fmt: skip
    if (hours is None) != (each is None):
        st.warning(
            "Ops count once both are entered: hours a week and what an hour costs.",
            icon=":material/info:",
        )
    two = st.columns(3, vertical_alignment="bottom")
    volume = two[0].slider("Volume, % of today", 0, 1000, 100, step=5, key="x-volume", bind=BIND)
    price = two[1].slider("API prices, % of today", 5, 300, 100, step=5, key="x-price", bind=BIND)
    capacity = two[2].slider(
        "Capacity of one engine, % of today", 10, 300, 100, step=5, key="x-capacity", bind=BIND
    )
    month = int(days) * DAY_HOURS
    return ScenarioChange(
        pusd_per_hour=None if rate is None or rate == rate_now else _pusd(rate),
        ops_pusd_per_week=None if hours is None or each is None else Fraction(str(hours))
        * _pusd(each),
        capacity_factor=Fraction(capacity, 100),
        price_factor=Fraction(price, 100),
        volume_factor=Fraction(volume, 100),
        month_hours=None if month == found.sheet.month_hours else month,
        movable=_movable(found, pool),
    )  # fmt: skip


def _movable(found: FleetVerdict, pool: str) -> dict[str, Fraction] | None:
    """Return models declared movable here by name, with a price per token."""
    stays = [name for line in found.judged if line.pool == pool for name in line.stays]
    if not stays:
        return None
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    chosen = left.multiselect(
        "Declared movable: requests that may not leave today", stays, key="x-movable", bind=BIND
    )
    usd = fields.number(
        right, "Their price elsewhere, USD per 1M tokens", (0.0, 1e6), None, step=0.1,
        key="x-movable-price", bind=BIND, placeholder="enter a price",
    )  # fmt: skip
    if chosen and usd is None:
        st.warning(
            "What is declared movable needs a price: without one it stays, never at $0.".replace(
                "$", "\\$"
            ),
            icon=":material/info:",
        )
    if not chosen or usd is None:
        return None
    return {name: _pusd(usd) / 10**6 for name in chosen}


def _ops_text(assumptions: PoolAssumptions) -> str:
    weekly = assumptions.ops_pusd_per_week
    if weekly is None:
        return "not entered"
    return f"today {verdict.read_money(weekly)} a week"


def _usd(pusd: Any) -> float | None:
    return None if pusd is None else round(float(pusd) / PUSD, 6)


def _pusd(usd: float) -> Fraction:
    return Fraction(str(usd)) * PUSD
