"""A verdict on a page: its sentence, its assumptions in one line, its options in a table.

It is the fleet's, whatever team is chosen, and people of single teams see none. Nothing here adds
up dollars: every amount is read from the ledger's `FleetVerdict`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import display, formatting, theme
from dashboard.charts import purchase
from dashboard.figures import dollars, money_columns
from ledger.economics.assumptions import (
    AssumptionSheet,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.economics.cost import Exact
from ledger.economics.fleet_verdict import FleetVerdict, PoolVerdict, VerdictAction, VerdictOption
from ledger.economics.reserved_capacity import ReservedPlan
from ledger.economics.verdict_text import count_text, dollars_and_cents, sentence, shift_text
from ledger.exports.verdict import verdict_csv
from ledger.reports.month_even import MonthEven
from ledger.reports.verdict_read import coverage_text
from ledger.spans import Scope

BECAUSE, WORTH = ", because ", ", worth "
SOURCE_CHARACTERS = 32  # maximum length of a rate's source in the line below a verdict
UNSURE_COLOUR = "#9A5B13"
_COLOURS = {
    VerdictAction.KEEP: theme.GAIN,
    VerdictAction.ADD: theme.GAIN,
    VerdictAction.REDUCE: theme.API_DEEP,
    VerdictAction.LEAVE: theme.API_DEEP,
}
OPS, APIS = "ops", "APIs"
_LINE_NAMES = {
    "gpu_rate": "GPU rate", "month_hours": "hours of the month", "billed_hours": "hours billed",
}  # fmt: skip


def read_money(pusd: Exact) -> str:
    """Return an amount to the cent in the displayed currency."""
    reading = display.now()
    if reading.money is None:
        return dollars_and_cents(pusd)
    return dollars_and_cents(pusd * reading.per_usd).replace("$", f"{reading.code}\u00a0", 1)


def show_answer(verdict: FleetVerdict, *, question: str = "", scope: Scope | None = None) -> None:
    """Draw the sentence, its first part large, with the sheet in one line below.

    Below it stands how much of `scope` it is judged from, if that is little.
    """
    head, _, rest = sentence(verdict, read_money).partition(BECAUSE)
    reason = f"because {rest}" if rest else ""
    if verdict.action is None and len(verdict.pools) == 1:
        head, colon, reason = head.partition(": ")
        head += colon.rstrip()
    month = f"{float(verdict.sheet.month_hours):g} h"
    theme.answer(
        question
        or f"Own {noun(verdict)} from now on, at the rates in force, for a month of {month}",
        head,
        reason,
        _colour(verdict),
    )
    if scope is not None and (note := coverage_text(verdict, scope)) is not None:
        st.caption(note)
    st.caption(formatting.quote(sheet_line(verdict)))


def best_text(verdict: FleetVerdict) -> str:
    """Return the best number of GPUs and its monthly cost in one line."""
    head = sentence(verdict, read_money).partition(BECAUSE)[0].partition(WORTH)[0]
    return f"{head}: {read_money(verdict.total_pusd(best=True))} a month"


def noun(verdict: FleetVerdict) -> str:
    """Return the unit that is counted: GPUs, machines without GPUs, or engines on shared ones."""
    names = {pool.noun[1] for pool in verdict.sheet.pools}
    return names.pop() if len(names) == 1 else "GPUs"


def sheet_line(verdict: FleetVerdict) -> str:
    """Return the assumptions in one line, with the sources of entered values."""
    month = f"month of {float(verdict.sheet.month_hours):g} h"
    pools = [
        (f"pool {pool.pool}: " if len(verdict.sheet.pools) > 1 else "") + _pool_line(pool)
        for pool in verdict.sheet.pools
    ]
    return " · ".join([*pools, month, f"sheet {verdict.sheet.version}"])


def _pool_line(pool: PoolAssumptions) -> str:
    rate, ops = pool.pusd_per_hour, pool.ops_pusd_per_week
    origin = pool.rate_origin or ""
    source = f" ({pool.rate_source}{': ' if origin else ''}{_short(origin)})"
    each = pool.capacity_per_minute
    known = f" ({pool.capacity_origin})" if pool.capacity_origin else ""
    parts = [
        f"{pool.noun[0]} rate not known"
        if rate is None
        else f"{read_money(rate)} per {pool.noun[0]}-hour{source}",
        *(
            [f"on demand, billed {float(pool.billed_share):.0%} of the hours".replace("%", " %")]
            if pool.billed_share != 1
            else []
        ),
        "ops not entered" if ops is None else f"ops {read_money(ops)} a week",
        "capacity not known"
        if each is None
        else f"one engine holds {formatting.tokens(each)} tokens a minute{known}",
        *map(_model_text, pool.models),
    ]
    return " · ".join(parts)


def _model_text(model: ModelAssumption) -> str:
    if model.pusd_per_token is None:
        if model.residency is ModelResidency.MAY_LEAVE:
            return f"{model.model} may leave, but its price elsewhere is not known"
        return f"{model.model} {model.residency}"
    price = formatting.money(Fraction(model.pusd_per_token) * 10**6)
    return f"{model.model} {model.residency} at {price} per 1M tokens"


def show_options(verdict: FleetVerdict) -> None:
    """Draw every number of GPUs of every pool with its monthly cost."""
    for pool in verdict.pools:
        if pool.action is None:
            continue
        name = f"Options of pool {pool.pool}" if len(verdict.pools) > 1 else "Options"
        theme.card(
            f"{name}, cost a month",
            theme.rows(*(_option_row(pool, option) for option in pool.options)),
            theme.small(*_below(pool, verdict), *_reserved(pool, verdict.sheet)),
            about="options",
        )


def show_chart(verdict: PoolVerdict) -> None:
    """Draw the options as bars of GPU, ops and API cost; the current and the best are marked."""
    own = verdict.assumptions.noun[1]
    colours = {own: theme.OWN, OPS: theme.OPS, APIS: theme.API}
    chart = purchase.options(option_records(verdict), colours=colours)
    theme.chart(chart, about="options")


def option_records(verdict: PoolVerdict) -> list[dict[str, Any]]:
    """Return one record for each part of each allowed option."""
    return [
        {"name": _marked(verdict, option), "kind": kind, "usd": dollars(float(pusd))}
        for option in verdict.options
        if option.allowed
        for kind, pusd in (
            (verdict.assumptions.noun[1], option.gpu_pusd),
            (OPS, option.ops_pusd),
            (APIS, option.api_pusd),
        )
        if pusd is not None
    ]


def show_sheet(verdict: FleetVerdict, *, simulated: bool, even: Sequence[MonthEven] = ()) -> None:
    """Draw the assumption sheet as a table, and offer the verdict as CSV with its label.

    `even` has the break-even volumes to include in the file.
    """
    with st.expander(f"Assumptions (sheet {verdict.sheet.version})"):
        table = [
            {
                "assumption": _LINE_NAMES.get(line.name, line.name),
                "pool": line.pool or "all",
                "value": "not known" if line.value is None else line.value,
                "unit": line.unit,
                "source": str(line.source),
                "from": line.origin or "",
                "since": line.since or "",
            }
            for line in verdict.sheet.lines
        ]
        theme.table(table, about="options", column_config=money_columns(table, {}))
        st.download_button(
            "Options and verdict (CSV)",
            verdict_csv(verdict, simulated=simulated, even=even),
            file_name="breakeven-verdict.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="verdict-csv",
        )


def _colour(verdict: FleetVerdict) -> str:
    if verdict.action is None or verdict.depends:
        return UNSURE_COLOUR
    return _COLOURS[verdict.action]


def _short(text: str) -> str:
    """Return a source of at most 32 characters, cut after a whole word."""
    if len(text) <= SOURCE_CHARACTERS:
        return text
    head = text[:SOURCE_CHARACTERS].rpartition(" ")[0] or text[: SOURCE_CHARACTERS - 1]
    return f"{head.rstrip(' ,;:')} …"


def _marked(verdict: PoolVerdict, option: VerdictOption) -> str:
    text = formatting.sentence(count_text(option.gpus, verdict.assumptions))
    marks = [
        word
        for word, marked in (("now", verdict.now), ("best", verdict.best))
        if marked is not None and marked.engines == option.engines
    ]
    return f"{text} ({', '.join(marks)})" if marks else text


def _option_row(verdict: PoolVerdict, option: VerdictOption) -> tuple[str, str, str | None]:
    name = _marked(verdict, option)
    if not option.allowed or option.total_pusd is None:
        return name, option.why_not or "", None
    ops = "ops not entered" if option.ops_pusd is None else f"ops {read_money(option.ops_pusd)}"
    own = verdict.assumptions.noun[1]
    parts = f"{own} {read_money(option.gpu_pusd)}, {ops}, APIs {read_money(option.api_pusd or 0)}"
    units = "; ".join(_plan_text(plan) for plan in option.reserved)
    parts += f" ({units})" if units else ""
    ends = ""
    if option.pro_rata_pusd is not None and option.pro_rata_pusd != option.total_pusd:
        ends = f" (pro rata {read_money(option.pro_rata_pusd)})"
    best = verdict.best is not None and verdict.best.engines == option.engines
    total = f"{read_money(option.total_pusd)}{_beside_now(verdict, option)}{ends}"
    return f"{name}: {parts}", total, theme.OWN if best else None


def _beside_now(verdict: PoolVerdict, option: VerdictOption) -> str:
    """Return the cost difference from the current number; empty for the current number."""
    beyond = verdict.beyond_now(option)
    if not beyond:
        return ""
    return f", {read_money(abs(beyond))} {'more' if beyond > 0 else 'less'} than now"


def _staying(verdict: PoolVerdict, fleet: FleetVerdict, name: str) -> str:
    """Return a model that may not leave, with its tokens per month."""
    curve, hours = fleet.curves.get(verdict.pool), verdict.assumptions.hours
    if curve is None or not hours:
        return name
    tokens = curve.staying_tokens(name) * Fraction(fleet.sheet.month_hours) / hours
    return f"{name} ({formatting.tokens(tokens)} tokens a month)"


def _plan_text(plan: ReservedPlan) -> str:
    units = formatting.plural(plan.units, "reserved unit")
    used = formatting.percent(float(plan.utilisation))
    return f"in it {units} of {plan.offer.target} at {read_money(plan.rent_pusd)}, {used} used"


def _reserved(verdict: PoolVerdict, sheet: AssumptionSheet) -> list[str]:
    """Return a note on entered reserved units that are worth their rent in no option."""
    pays = {plan.offer.target for option in verdict.options for plan in option.reserved}
    idle = sorted({offer.target for offer in sheet.reserved} - pays)
    leaves = any(
        model.residency is ModelResidency.MAY_LEAVE for model in verdict.assumptions.models
    )
    if not idle or not leaves:
        return []
    return [f"Reserved units of {', '.join(idle)}: tokens one by one are cheaper in every option."]


def _below(verdict: PoolVerdict, fleet: FleetVerdict) -> list[str]:
    """Return what would change the verdict, which models may not leave, and the basis."""
    lines = [shift_text(shift, verdict.assumptions, read_money) for shift in verdict.shifts]
    notes = [f"**What would change it.** {' '.join(lines)}"] if lines else []
    if verdict.stays:
        own = verdict.assumptions.noun[1]
        names = ", ".join(_staying(verdict, fleet, name) for name in verdict.stays)
        notes.append(f"Need own {own}, because they may not leave: {names}.")
    notes.append(
        f"APIs: what models that these {verdict.assumptions.noun[1]} serve cost there; other "
        f"models change nothing here. With fewer {verdict.assumptions.noun[1]}, requests that "
        "avoid the fewest dollars per second of engine time leave first, as the router decides. "
        "Pro rata: the same share of all requests that may leave."
    )
    return notes
