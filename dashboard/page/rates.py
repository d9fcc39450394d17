"""Rates page: cost of own hardware and its operation, and teams of billed projects.

Finance people and admins enter rates here; the gateway checks permission again, and the ledger
records author and reason. A rate applies at once or from a later day; the past does not change.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from dashboard import confirmation, formatting, theme
from dashboard.admin_client import AdminClient
from dashboard.charts import plots, rates
from dashboard.data import entries
from dashboard.data.reads import DashboardView
from dashboard.figures import dollars
from dashboard.sections import currency, offers, projects
from ledger.fleet.paidrates import rate_of
from ledger.fleet.pool_records import ContractVersion
from ledger.manual_entries import ManualEntry, entries_in_force, latest_us, upcoming_entries

RATES = "rates"  # the change's name
SECONDS = 3_600
WEEK_HOURS, MOST_USD = 168, 1_000_000  # as the gateway bounds them
LAST_US = 253_402_214_400 * 10**6  # 31 December 9999: the last valid date
NO_RATE = "Enter your GPU rate"


def show(view: DashboardView) -> None:
    confirmation.show_outcome(RATES)
    versions, entered = entries.rates(view)
    latest = {version.pool: version for version in versions}
    if not latest:
        st.info(
            "No own hardware is configured: a pool of engines (`pools.NAME`) has a contract, and "
            "a contract a rate.",
            icon=":material/memory:",
        )
        offers.show(view)
        projects.show(view)
        currency.show(view)
        return
    now_us = latest_us(entered, view.now_us)
    _picture(versions, entered, now_us)
    standing, later = entries_in_force(entered, now_us), upcoming_entries(entered, now_us)
    columns = st.columns(min(3, len(latest)))
    for place, (pool, version) in enumerate(latest.items()):
        with columns[place % len(columns)]:
            coming = [each for each in later if each.name == pool]
            _card(version, standing.get(pool), coming)
    desk = confirmation.desk_for(view)
    if desk is None:
        st.caption(
            "Finance people and admins who have signed in enter rates here; where the gateway runs "
            "it is `breakeven rates enter POOL --usd-per-hour 2.50 --source CONTRACT`."
        )
    else:
        _form(desk, latest, standing, now_us)
    offers.show(view)
    projects.show(view)
    currency.show(view)


def _picture(
    versions: Sequence[ContractVersion], entered: Sequence[ManualEntry], now_us: int
) -> None:
    records = records_of(versions, upcoming_entries(entered, now_us), now_us)
    if not records:
        unknown = ", ".join(f"`{name}`" for name in sorted({version.pool for version in versions}))
        st.warning(
            f"**{NO_RATE} for {unknown}.** Without it nobody can say whether own hardware pays: "
            "its cost is unknown, not $0.",
            icon=":material/price_change:",
        )
        return
    pools = sorted({record["kind"] for record in records})
    colours = {pool: plots.PALETTE[n % len(plots.PALETTE)] for n, pool in enumerate(pools)}
    chart = rates.steps(records, colours=colours, now=formatting.instant(now_us))
    theme.chart(chart, about="rate")
    st.caption(
        "What one GPU costs an hour, from when it counts. Right of the line is what was entered "
        "for a day to come. Hours that are closed stay as they were billed."
    )


def records_of(
    versions: Sequence[ContractVersion], later: Sequence[ManualEntry], now_us: int
) -> list[dict[str, Any]]:
    """Return each pool's steps, until a week from now or a month after the last entry."""
    day_us = 86_400 * 10**6
    end_us = max([now_us + 7 * day_us, *(entry.from_us + 30 * day_us for entry in later)])
    end_us = min(end_us, LAST_US)
    points: dict[str, list[tuple[int, int, str]]] = {}
    for version in versions:
        if version.pusd_per_hour is not None:
            said = version.source or "no source given"
            points.setdefault(version.pool, []).append(
                (version.recorded_us, version.pusd_per_hour, said)
            )
    for coming in later:
        rate = rate_of(coming)
        if rate is not None and rate.pusd_per_hour is not None:
            place = (coming.from_us, rate.pusd_per_hour, coming.actor)
            points.setdefault(coming.name, []).append(place)
    records = []
    for pool, items in sorted(points.items()):
        steps = [*items, (end_us, items[-1][1], "")]
        records += [
            {"at": formatting.instant(at_us), "kind": pool, "usd": dollars(pusd), "by": said,
             "said": bool(said)}
            for at_us, pusd, said in steps
        ]  # fmt: skip
    return records


def _card(terms: ContractVersion, entry: ManualEntry | None, later: Sequence[ManualEntry]) -> None:
    said = "By the configuration file."
    if entry is not None and entry.says is not None:
        why = f": {entry.note}" if entry.note else ""
        said = f"Entered by **{entry.actor}**, {formatting.moment(entry.recorded_us)}{why}."
    rate = terms.pusd_per_hour
    ops = _ops_text(terms.ops_seconds_per_week, terms.ops_pusd_per_hour)
    shared = "" if terms.machine is None else f", its part of {terms.machine}"
    theme.card(
        f"Pool {terms.pool}: {formatting.hardware_count(terms.gpu_type, terms.gpus)} "
        f"({terms.gpu_type})",
        theme.big(NO_RATE if rate is None else formatting.money(rate) + " an hour", size="mid"),
        theme.rows(
            (f"Source of the rate{shared}", terms.source or "no source given", None),
            (
                "All GPUs, 720 h",
                "unknown" if rate is None else formatting.money(720 * rate * terms.gpus),
                theme.OWN,
            ),
            ("People who run it", ops, None),
        ),
        theme.small(said, *(_coming_text(each) for each in later)),
        about="rate",
    )


def _ops_text(seconds_per_week: int, pusd_per_hour: int) -> str:
    if not seconds_per_week:
        return "none entered"
    return f"{seconds_per_week / SECONDS:g} h a week at {formatting.money(pusd_per_hour)}"


def _coming_text(entry: ManualEntry) -> str:
    rate = rate_of(entry)
    what = "as configured"
    if rate is not None and rate.pusd_per_hour is not None:
        what = f"{formatting.money(rate.pusd_per_hour)} an hour"
    begins = f"{formatting.instant(entry.from_us):%d %b %Y} (UTC)"
    text = f"From {begins}: **{what}**, by {entry.actor}."
    if rate is None:
        return text
    return f"{text} People: {_ops_text(rate.ops_seconds_per_week, rate.ops_pusd_per_hour)}."


def _form(
    desk: AdminClient,
    latest: dict[str, ContractVersion],
    standing: dict[str, ManualEntry],
    now_us: int,
) -> None:
    with st.container(border=True):
        st.markdown("**Enter a rate**")
        pool = st.selectbox("Pool", list(latest), key="rates-pool")
        given = _rate_form(latest[pool], now_us)
        wrong = faults(given)
        for text in wrong:
            st.error(text, icon=":material/edit_note:")
        ready = not wrong and bool(given["source"]) and given["usd_per_hour"] is not None
        left, right = st.columns(2)
        if left.button(
            "Enter it", key="rates-enter", icon=":material/price_change:", disabled=not ready,
            help=None if ready else "It needs a rate and where it comes from.",
        ):  # fmt: skip
            confirmation.request_confirmation(RATES, "enter")
        entry = standing.get(pool)
        if entry is not None and entry.says is not None and right.button(
            "Back to the configuration's", key="rates-withdraw", icon=":material/undo:"
        ):  # fmt: skip
            confirmation.request_confirmation(RATES, "withdraw")
        wanted = confirmation.pending_change(RATES)
        if wanted == "enter" and ready:
            _enter(desk, latest[pool], given)
        elif wanted == "withdraw":
            _withdraw(desk, pool, given["note"])


def _rate_form(terms: ContractVersion, now_us: int) -> dict[str, Any]:
    """Return the form's values; it starts with the current rates."""
    first, second, third = st.columns(3, vertical_alignment="bottom")
    now = None if terms.pusd_per_hour is None else dollars(terms.pusd_per_hour)
    pool = terms.pool
    rate = first.number_input(
        "USD an hour of one GPU", value=now, step=0.05, format="%.4f",
        key=f"rates-usd-{pool}", placeholder="as the contract says",
    )  # fmt: skip
    hours = second.number_input(
        "Ops hours a week", value=terms.ops_seconds_per_week / SECONDS, step=0.5,
        key=f"rates-hours-{pool}",
    )  # fmt: skip
    ops = third.number_input(
        "Ops cost per hour, USD", value=dollars(terms.ops_pusd_per_hour), step=5.0,
        key=f"rates-ops-{pool}",
    )  # fmt: skip
    source = st.text_input(
        "Source of the change", value=terms.source or "", max_chars=300,
        placeholder="contract 2026-17, a provider's list of 3 November", key=f"rates-source-{pool}",
    )  # fmt: skip
    first, second = st.columns([1, 2], vertical_alignment="bottom")
    tomorrow = datetime.fromtimestamp(now_us / 1e6, UTC).date() + timedelta(days=1)
    since = first.date_input(
        "First day (UTC); empty: at once", value=None, min_value=tomorrow, key="rates-since"
    )
    note = second.text_input(
        "Reason, for later readers (optional)", max_chars=500, key="rates-note"
    )
    return {
        "pool": pool, "usd_per_hour": None if rate is None else f"{rate:.6f}",
        "ops_hours_per_week": None if hours is None else f"{hours:g}",
        "ops_usd_per_hour": None if ops is None else f"{ops:.6f}",
        "source": source.strip(), "since": None if since is None else str(since),
        "note": note.strip() or None,
    }  # fmt: skip


def faults(given: Mapping[str, Any]) -> list[str]:
    """Return the errors of the form's numbers as text."""
    rate, hours, ops = (
        None if given[name] is None else float(given[name])
        for name in ("usd_per_hour", "ops_hours_per_week", "ops_usd_per_hour")
    )
    found = {
        f"USD an hour of one GPU is more than 0 and at most {MOST_USD:,}; what is owned has its "
        "amortisation and its power.": rate is not None and not 0 < rate <= MOST_USD,
        f"Ops hours a week are 0 to {WEEK_HOURS}.": hours is None or not 0 <= hours <= WEEK_HOURS,
        f"Ops cost per hour, USD is 0 to {MOST_USD:,}.": ops is None or not 0 <= ops <= MOST_USD,
    }
    return [text for text, wrong in found.items() if wrong]


def stated(terms: ContractVersion, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form without unchanged fields, which keep their value of the first day.

    The source belongs to the stated fields. A form without changes states the rate.
    """
    ops = "ops_hours_per_week", "ops_usd_per_hour"
    before = _terms_text(terms)
    if all(given[name] == before[name] for name in ops):
        return {**given, **dict.fromkeys(ops)}
    if given["usd_per_hour"] == before["usd_per_hour"]:
        return {**given, "usd_per_hour": None}
    return {**given}


def lines_of(terms: ContractVersion, given: Mapping[str, Any]) -> list[str]:
    """Return the differences between form and terms as a diff; empty without any."""
    before, said = _terms_text(terms), stated(terms, given)
    rate, source = before["usd_per_hour"], given["source"] or "no source"
    old = f"{'unknown' if rate is None else f'${rate}'} an hour, {terms.source or 'no source'}"
    lines = []
    if said["usd_per_hour"] is not None:
        new = f"${given['usd_per_hour']} an hour, {source}"
        lines += [f"-GPU: {old}", f"+GPU: {new}"] if new != old else []
    if said["ops_hours_per_week"] is not None:
        lines += [f"-people: {_people(before)}", f"+people: {_people(given)}, {source}"]
    return lines


def _terms_text(terms: ContractVersion) -> dict[str, str | None]:
    """Return the current numbers in the form's format."""
    rate = terms.pusd_per_hour
    return {
        "usd_per_hour": None if rate is None else f"{dollars(rate):.6f}",
        "ops_hours_per_week": f"{terms.ops_seconds_per_week / SECONDS:g}",
        "ops_usd_per_hour": f"{dollars(terms.ops_pusd_per_hour):.6f}",
    }


def _people(given: Mapping[str, Any]) -> str:
    return f"{given['ops_hours_per_week']} h a week at ${float(given['ops_usd_per_hour']):.2f}"


def _enter(desk: AdminClient, terms: ContractVersion, given: dict[str, Any]) -> None:
    begins = "at once" if given["since"] is None else f"from {given['since']} on"
    shared = (
        "" if terms.machine is None else f" All pools on {terms.machine} bear their parts of it."
    )
    st.warning(
        f"It counts {begins}; gateways charge by it within 2 seconds, and hours that are closed "
        f"stay as they are.{shared} It changes:",
        icon=":material/warning:",
    )
    changes = lines_of(terms, given)
    if changes:
        st.code("\n".join(changes), language="diff")
    else:
        st.caption("Nothing but the day and the note: it says what counts already.")
    if confirmation.is_confirmed(RATES, "Yes, enter it"):
        sent = stated(terms, given)
        done = confirmation.send_change(RATES, desk, "/rates", **sent)
        pools = ", ".join(each["pool"] for each in done["entered"])
        confirmation.report_done(
            RATES, f"The rate of {pools} is entered, {begins}, by {done['by']}."
        )


def _withdraw(desk: AdminClient, pool: str, note: str | None) -> None:
    st.warning(
        f"What was entered for {pool} is taken back, also what was to come: the configuration's "
        "rate counts again from now on.",
        icon=":material/warning:",
    )
    if confirmation.is_confirmed(RATES, "Yes, take it back"):
        done = confirmation.send_change(RATES, desk, "/rates/withdraw", pool=pool, note=note)
        said = f"The configuration's rate of {pool} counts again, by {done['by']}."
        confirmation.report_done(RATES, said)
