"""Plan page: verdict and payment options of own GPUs, then a purchase for API traffic.

From top to bottom: the verdict, and what it would be at committed rates; then the API traffic, the
GPU, the plan's figures, its chart and every way. A viewer without GPUs uploads a provider's usage
export and picks one. All inputs are in the URL, so that a plan can be shared; the report is one
printable HTML file.
"""

from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import display, formatting, theme
from dashboard.charts import purchase
from dashboard.data import reads, verdicts
from dashboard.data.reads import DashboardView
from dashboard.figures import labels, money_columns
from dashboard.planning import (
    BASIS,
    OptionResult,
    PlanInputs,
    PlanTraffic,
    PurchasePlan,
    break_even_of,
    cumulative_records,
    number_of,
    of_file,
    of_ledger,
    plan,
    pool_ways,
    verdict,
)
from dashboard.planreport import PlanFrame, report
from dashboard.sections import verdict as judgement
from dashboard.sections.planform import (
    THREE_YEARS,
    YEAR,
    figures_of,
    inputs_of,
    is_of_plan,
    pick_gpu,
)
from dashboard.sections.saved_scenarios import scenarios
from dashboard.verdictreport import verdict_page
from ledger.economics.breakeven import BreakEvenFix, CostDriver
from ledger.economics.cost import SECONDS_PER_HOUR
from ledger.economics.fleet_verdict import FleetVerdict
from ledger.economics.purchase import HOURS_OF_A_MONTH, Commitment, PurchaseKind
from ledger.economics.usagefile import UsageFileError, parse_usage, priced
from ledger.reports.survey import Survey

UPLOAD = "a provider's usage export"
LEDGER = "this ledger"
MOST_MIB = 16
OFF_YEAR, OFF_THREE_YEARS = Fraction(1, 5), Fraction(2, 5)


def show(view: DashboardView) -> None:
    survey = reads.survey(view)
    judged = verdicts.fleet(view) if view.viewer.sees_house and survey.contracts else None
    if judged is not None:
        theme.label(*labels(survey))
        judgement.show_answer(judged, scope=view.scope)
        _show_pool_ways(judged, survey)
        st.subheader("GPUs for what goes to APIs", anchor=False)
    traffic = _traffic(view, survey, labelled=judged is not None)
    if traffic is None:
        _offer_verdict(view, survey, judged)
        return
    _show_figures(traffic)
    st.subheader("The GPU", anchor=False)
    chosen = pick_gpu(view, survey)
    st.subheader("The plan", anchor=False)
    figures = figures_of(survey, chosen, traffic)
    scenarios(view, "plan", is_of_plan)
    found = plan(traffic, figures)
    text, more, _ = verdict(found, chosen.gpu)
    theme.card(
        f"{figures.months} months, {traffic.name}",
        theme.big(text, size="mid"),
        theme.small(more),
        about="npv",
    )
    if len(found.ways) == 1:
        st.info(
            "Enter your GPU rate, or what a GPU costs to buy, and what one serves: without them "
            "there is nothing to compare, and nothing is taken to be free.",
            icon=":material/price_change:",
        )
        return
    _drawn(found, chosen.gpu)
    left, right = st.columns(2)
    with left:
        _ways(found, chosen.gpu)
    with right:
        _break_even(traffic, figures, chosen.gpu)
    _months(found)
    with display.read_as(display.BOOKS):  # in dollars and UTC, as for exports
        made = f"Made {formatting.moment(view.now_us)} from the traffic of {traffic.name}."
        printed = report(
            found,
            chosen.gpu,
            inputs_of(traffic, figures, chosen),
            PlanFrame(made, tuple(_labels(survey, traffic)), judged),
        )
    _offer(printed, "breakeven-plan.html")


def _show_pool_ways(judged: FleetVerdict, survey: Survey) -> None:
    """Draw each pool's verdict at committed rates, as judged by the ledger."""
    terms = (Commitment(YEAR, OFF_YEAR), Commitment(THREE_YEARS, OFF_THREE_YEARS))
    for pool in judged.judged:
        rows = [
            (
                (
                    f"{way.name}, {judgement.read_money(way.pusd_per_hour)} per "
                    f"{pool.assumptions.noun[0]}-hour"
                ),
                judgement.best_text(way.verdict),
                None,
            )
            for way in pool_ways(judged, pool.pool, terms)
        ]
        theme.card(
            f"Ways to pay for pool {pool.pool}",
            theme.rows(*rows),
            theme.small(
                f"Discounts of {formatting.percent(OFF_YEAR)} and "
                f"{formatting.percent(OFF_THREE_YEARS)} are assumed: try your own rate on "
                "Break-even, What if."
            ),
            about="options",
        )
    judgement.show_sheet(judged, simulated=bool(labels(survey)))


def _offer_verdict(view: DashboardView, survey: Survey, judged: FleetVerdict | None) -> None:
    """Offer the printable verdict if there is nothing else to plan."""
    if judged is None:
        return
    with display.read_as(display.BOOKS):
        printed = verdict_page(judged, labels(survey), f"Made {formatting.moment(view.now_us)}.")
    _offer(printed, "breakeven-verdict.html")


def _offer(printed: str, name: str) -> None:
    st.download_button(
        "Report to print (HTML)",
        printed,
        file_name=name,
        mime="text/html",
        icon=":material/print:",
        on_click="ignore",
        key="plan-report",
    )


def _labels(survey: Survey, traffic: PlanTraffic) -> list[str]:
    """Return the labels of the planned traffic; an uploaded export is not simulated."""
    return labels(survey) if traffic.is_of_ledger else []


def _traffic(view: DashboardView, survey: Survey, *, labelled: bool) -> PlanTraffic | None:
    """Return the traffic to plan for, or `None` after a message on what is missing."""
    known = of_ledger(survey)
    first = st.segmented_control(
        "Whose traffic",
        [LEDGER, UPLOAD],
        default=LEDGER if known else UPLOAD,
        required=True,
        key="traffic",
    )
    if first == UPLOAD:
        return _upload_traffic(view)
    if not labelled:
        theme.label(*labels(survey))
    if not known:
        st.info(
            "No request in this period has a price that a GPU could save. Choose a longer period, "
            f"or upload {UPLOAD}.",
            icon=":material/upload_file:",
        )
        return None
    names = {name.name: name for name in known}
    return names[st.selectbox("Which of it", list(names), key="plan-traffic")]


def _upload_traffic(view: DashboardView) -> PlanTraffic | None:
    given = st.file_uploader(
        "OpenAI's or Anthropic's usage (CSV or JSON), or `breakeven ledger export` (CSV)",
        type=["csv", "json"],
        max_upload_size=MOST_MIB,
        key="usage-file",
    )
    if given is None:
        st.info(
            "Export usage grouped by model (OpenAI: Usage, Export; Anthropic: Usage, Export, or an "
            "answer of its usage report; best in buckets of an hour or a minute) and drop the file "
            "here. It is read in memory and kept nowhere. Then pick a "
            "GPU, and break-even stands below.",
            icon=":material/upload_file:",
        )
        return None
    try:
        with st.spinner("Reading the export ..."):
            file = parse_usage(given.getvalue(), given.name)
            cost = priced(file, reads.price_book(view))
    except UsageFileError as error:
        st.error(f"This file cannot be read as usage.\n\n{error}", icon=":material/error:")
        return None
    found = of_file(file, cost)
    if found is None:
        names = ", ".join(cost.unpriced)
        st.warning(
            f"The price book has no price for {names}: what these tokens cost is not known, and "
            "not taken to be $0. Import prices with `breakeven prices import`.",
            icon=":material/sell:",
        )
    return found


def _show_figures(traffic: PlanTraffic) -> None:
    each = formatting.money(Fraction(traffic.average.pusd_per_token) * 10**6)
    month = formatting.money(traffic.per_month * Fraction(traffic.average.pusd_per_token))
    columns = st.columns(3)
    for column, (name, figure) in zip(
        columns,
        (
            (f"Tokens a month, {BASIS}", formatting.tokens(traffic.per_month)),
            (f"API price per 1M tokens, {BASIS}", each),
            ("A month at the API", month),
        ),
        strict=True,
    ):
        with column:
            theme.card(name, theme.big(figure, size="mid"), about="spend")
    for note in traffic.notes:
        st.caption(note)


def _drawn(found: PurchasePlan, gpu: str) -> None:
    records, colours = cumulative_records(found)
    theme.chart(purchase.cumulative(records, colours=colours), about="npv")
    st.caption(
        f"Paid until the end of each month, not discounted; what {gpu}s are worth at the end is "
        "left out of the lines and is in the NPV. A month has 730 h here, a twelfth "
        "of a year; the verdict's month is the one that it names."
    )


def _months(found: PurchasePlan) -> None:
    """Draw a table of the plan's months, as in its lines."""
    st.subheader("Month by month", anchor="months")
    records, colours = cumulative_records(found)
    rows: dict[float, dict[str, Any]] = {}
    for record in records:
        month = rows.setdefault(record["month"], {"month": record["month"]})
        month[record["kind"]] = record["usd"] * float(display.now().per_usd)
    table = list(rows.values())
    theme.table(table, about="npv", height=240, column_config=money_columns(table, colours))
    st.caption(
        f"Paid until the end of each month, in {display.now().unit_of('dollars')}, not discounted."
    )


def _ways(found: PurchasePlan, gpu: str) -> None:
    rows = []
    for way in found.ways:
        name = way.option.name
        if way.option.way is not PurchaseKind.STAY:
            name += f", {number_of(way.option.gpus)} x {gpu}"
        tail = "" if way is found.ways[0] else f" ({formatting.money(way.saved_pusd, sign=True)})"
        rows.append((name, f"{formatting.money(way.npv_pusd)}{tail}", None))
    back = [f"{way.option.name}: {_paid_back(way)}" for way in found.ways[1:]]
    theme.card(
        "NPV of all costs, and what is saved against staying",
        theme.rows(*rows),
        theme.small(*back),
        about="npv",
    )


def _paid_back(result: OptionResult) -> str:
    if not max(result.option.gpus):
        return "cheaper than the API in no month."
    if result.payback is None:
        return "does not pay back within the horizon."
    return f"pays back in month **{result.payback}**."


def _break_even(traffic: PlanTraffic, figures: PlanInputs, gpu: str) -> None:
    found = break_even_of(traffic, figures)
    if found is None:
        theme.card(
            "Break-even of one GPU", theme.big("Enter your GPU rate", size="mid"), about="breakeven"
        )
        return
    rate = figures.pusd_per_hour or 0
    if found.volume is None:
        theme.card(
            "Break-even of one GPU",
            theme.big("Nothing is saved per token", size="mid"),
            about="breakeven",
        )
        return
    can = formatting.tokens(found.capacity.tokens)
    needs = formatting.tokens(found.volume.tokens)
    notes = [
        (
            f"A month of one {gpu} at {formatting.money(rate)} an hour, {_ops_text(figures)}, "
            f"divided by the API's price per token ({BASIS})."
        ),
        (
            f"In use {formatting.percent(figures.duty)} of the time it can serve **{can}** a month "
            f"inside the promise; this traffic is **{formatting.tokens(traffic.per_month)}**."
        ),
    ]
    if not found.feasible:
        notes.append("**One cannot break even against this API.** What alone could change that:")
        notes += [text for cure in found.cures if (text := _cure(cure, figures)) is not None]
        today = found.served_pusd_per_hour
        pays = (
            "no rate" if today is None else f"a rate of at most {formatting.money(today)} an hour"
        )
        notes.append(f"This traffic alone pays for {pays}.")
    theme.card(
        "Break-even of one GPU",
        theme.big(f"{needs} tokens a month", size="mid"),
        theme.small(*notes),
        about="breakeven",
    )


def _ops_text(figures: PlanInputs) -> str:
    """Return whether the cost of a month includes ops."""
    known = figures.ops_hours_per_week is not None and figures.ops_pusd_per_hour is not None
    return "with ops" if known else "ops not entered"


def _cure(cure: BreakEvenFix, figures: PlanInputs) -> str | None:
    """Return one change in terms of the form; `None` if no such change suffices."""
    lever, needed = cure.lever, cure.needed
    if needed is None or (lever is CostDriver.OPS and not figures.ops_pusd):
        return None
    if lever is CostDriver.GPU_RATE:
        return f"a rate of at most **{formatting.money(needed)}** an hour, if the GPU is full"
    if lever is CostDriver.API_PRICE:
        price = formatting.money(Fraction(needed) * 10**6)
        return f"an API price of at least **{price}** per 1M tokens, if the GPU is full"
    if lever is CostDriver.GPUS:
        return f"**{needed}** GPUs, if the traffic is there"
    if lever is CostDriver.CAPACITY:
        per_s = Fraction(needed) / HOURS_OF_A_MONTH / SECONDS_PER_HOUR / figures.duty
        return f"**{formatting.tokens(per_s)}** tokens a second of one GPU, if the traffic is there"
    return f"ops of at most **{formatting.money(needed)}** a month"
