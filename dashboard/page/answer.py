"""Verdict page: what to do with own GPUs from now on, then the period in figures.

From top to bottom: a label for simulated traffic, the verdict in one sentence with its assumptions
and options, each comparator over the period, spending, SLO attainment, current spill. The verdict
is the fleet's, whatever team is chosen; a team also gets its own figures.
"""

from collections import Counter
from fractions import Fraction

import streamlit as st

from dashboard import admin_client, display, fields, formatting, theme
from dashboard.charts import plots
from dashboard.data import reads, verdicts
from dashboard.data.reads import DashboardView
from dashboard.figures import (
    adjustment_rows,
    labels,
    money_over_time,
    ops_rows,
    own_hardware,
    own_rows,
    refused_rows,
    slo_share,
)
from dashboard.page import budgets
from dashboard.scenario import ScenarioChange, changed
from dashboard.sections import beside_sums, currency, slo_blocks, team, verdict
from dashboard.sections.result_text import break_even_hints, capacity, trend
from ledger.economics.cost import UnitPrice
from ledger.economics.verdict_text import sentence
from ledger.fleet.capability import CapabilitySource
from ledger.queries.reads import CONVERSATION
from ledger.reports.fleet_economics import ComparatorResult, FleetEconomics
from ledger.reports.month_even import FREE
from ledger.reports.survey import Survey
from ledger.reports.verdict_read import evens_of

SPILL_MINUTES = 5
MOST_USD = 1e6  # an hour


def show(view: DashboardView) -> None:
    house, survey = _read(view)
    theme.label(*labels(survey))
    if not survey.cells and not survey.contracts:
        _empty()
        return
    if view.team is not None:
        _of_team(view, survey, house)
        return
    alone = _only_apis(view)
    if alone:  # no own engine answers yet, as after a first start
        _show_spilling(view)
    _show_verdict(view, survey)
    _rates(view, survey.standing)
    st.subheader(formatting.sentence(view.words), anchor=False)
    beside_sums.show_begin(view)
    if survey.standing.verdicts:
        columns = st.columns(len(survey.standing.verdicts))
        for column, comparator in zip(columns, survey.standing.verdicts, strict=True):
            with column:
                _comparator(survey, comparator)
    first, second, third = st.columns([1.15, 1, 1])
    with first:
        _spend(view, survey)
    with second:
        _show_served(view, survey)
    with third:
        if not alone:
            _show_spilling(view)
        budgets.show_glance(view)
    st.subheader("What was spent, over time", anchor=False)
    records = money_over_time(survey)
    if records:
        chart = plots.stacked_chart(
            records,
            value="usd",
            colours=plots.money_colours(own_hardware(survey), adjusted=bool(survey.adjustments)),
            title="dollars",
        )
        theme.chart(chart, about="spend")
    else:
        st.caption("Nothing has a known cost: it takes a rate, a price and an answer.")


def _read(view: DashboardView) -> tuple[Survey | None, Survey]:
    """Return the survey of all teams (`None` where no verdict is drawn), and the view's."""
    if view.team is None:
        return None, reads.survey(view)
    return reads.surveys(view) if view.viewer.sees_house else (None, reads.spending(view))


def _of_team(view: DashboardView, survey: Survey, house: Survey | None) -> None:
    """Draw the fleet's verdict, labeled as such, and the team's own figures."""
    if house is not None:
        _show_verdict(view, survey)
        st.caption(team.scope_note(survey))
    beside_sums.show_begin(view)
    first, second = st.columns(2)
    with first:
        team.spent(survey)
        _show_served(view, survey)
    with second:
        team.show_comparators(survey)
        _show_spilling(view)
    st.subheader("What was spent, over time", anchor=False)
    team.over_the_period(survey)


def _show_verdict(view: DashboardView, survey: Survey) -> None:
    """Draw the fleet's verdict; nothing for people limited to single teams."""
    if not view.viewer.sees_house:
        return
    found = verdicts.fleet(view)
    whole = f"All teams, own {verdict.noun(found)}"
    verdict.show_answer(found, question="" if view.team is None else whole, scope=view.scope)
    if view.team is None:
        verdict.show_options(found)
        verdict.show_sheet(found, simulated=bool(labels(survey)), even=evens_of(survey))


def _comparator(survey: Survey, comparator: ComparatorResult) -> None:
    standing = survey.standing
    names = ", ".join(comparator.comparators)
    title = f"Against the {comparator.against}: {names}"
    if comparator.stands is None:
        theme.card(
            title, theme.small("Enter the GPU rate, and this card answers."), about="comparator"
        )
        return
    if standing.is_free:
        avoided, own = formatting.money(comparator.avoided_pusd), own_hardware(survey)
        text = f"**{avoided}** at API prices. What own {own} saved is not known: {FREE}."
        theme.card(title, theme.small(text), about="comparator")
        return
    result = Fraction(comparator.stands.result_pusd)
    gained = result >= 0
    word, tone = ("saved", "be-gain") if gained else ("overspent", "be-loss")
    parts = [
        theme.big(formatting.money(abs(result)) + f" {word}", tone=tone),
        theme.small(
            f"**{formatting.money(comparator.avoided_pusd)}** avoided at API prices, less "
            f"**{formatting.money(standing.fixed.total_pusd)}** for own {own_hardware(survey)}"
            + (" and their ops" if standing.fixed.ops_pusd else " (ops not entered)"),
        ),
        *_cancelled(survey, comparator),
        _gauge(standing, comparator),
        theme.small(*_notes(survey, comparator)),
    ]
    theme.card(title, *parts, about="comparator")


def _cancelled(survey: Survey, comparator: ComparatorResult) -> list[str]:
    """Return a note on cancelled answers, which are part of the avoided cost."""
    if not comparator.cancelled_pusd:
        return []
    pusd = formatting.money(comparator.cancelled_pusd)
    answers = sum(cell.attempts for cell in survey.cells if cell.avoids and cell.is_cancelled)
    return [
        theme.small(
            f"**{pusd}** of it is of answers that the client cancelled "
            f"({formatting.plural(answers, 'answer')})."
        )
    ]


def _gauge(standing: FleetEconomics, verdict: ComparatorResult) -> str:
    assert verdict.stands is not None
    volume, even = verdict.stands.volume.tokens, verdict.even
    needed = even.volume.tokens if even and even.volume else None
    if needed is None and verdict.average is not None and verdict.average.pusd_per_token:
        needed = Fraction(standing.fixed.total_pusd) / Fraction(verdict.average.pusd_per_token)
    able = standing.capability.volume.tokens if standing.capability else None
    floor = standing.capability is None or standing.capability.known is CapabilitySource.FLOOR
    known = "seen at best" if floor else "capacity"
    texts = (
        f"served **{formatting.tokens(volume)}**",
        f"break-even **{formatting.tokens(needed)}**" if needed is not None else "",
        f"{known} **{formatting.tokens(able)}**" if able is not None else "",
    )
    return theme.gauge(
        float(volume),
        None if needed is None else float(needed),
        None if able is None else float(able),
        texts,
        theme.GAIN if verdict.stands.result_pusd >= 0 else theme.LOSS,
    )


def _notes(survey: Survey, verdict: ComparatorResult) -> list[str]:
    standing = survey.standing
    assert verdict.stands is not None
    basis = standing.served.basis
    notes = [f"Tokens are {basis}, answered by own engines inside the SLO."]
    if verdict.average is not None:
        notes.append(
            f"Avoided price **{_per_million(verdict.average)}** per 1M tokens ({basis}), "
            + ("token counts scaled." if verdict.scaled else "token counts unscaled.")
        )
    if verdict.stands.ratio is not None:
        notes.append(f"Volume is **{formatting.percent(verdict.stands.ratio)}** of break-even.")
    notes += capacity(standing)
    notes += break_even_hints(standing, verdict)
    notes += trend(survey, verdict)
    return notes


def _per_million(price: UnitPrice) -> str:
    return formatting.money(Fraction(price.pusd_per_token) * 10**6)


def _rates(view: DashboardView, standing: FleetEconomics) -> None:
    """Ask for the rate of each pool without one, and let the viewer try a rate."""
    for pool in standing.unrated:
        with st.container(border=True):
            left, right = st.columns([3, 1], vertical_alignment="center")
            left.markdown(
                f"**Enter your GPU rate for pool `{pool}`.** Without it nobody can say whether the "
                "GPUs pay. Enter it on [Rates and teams](rates), or set "
                f"`pools.{pool}.gpu.usd_per_hour` and its `source` in the configuration file."
            )
            label = "Try a rate, USD per GPU-hour"
            rate = fields.number(right, label, (0.0, MOST_USD), None, step=0.1, key=f"r-{pool}")
            if rate and view.viewer.sees_house:
                change = ScenarioChange(pusd_per_hour=Fraction(str(rate)) * 10**12)
                tried = changed(verdicts.fleet(view), pool, change)
                said = sentence(tried, verdict.read_money)
                left.html(theme.small(f"At ${rate:.2f} an hour: **{said}**"))


def _spend(view: DashboardView, survey: Survey) -> None:
    bills = survey.standing.bills
    used, idle, down = (
        sum(getattr(bill, name) for bill in bills)
        for name in ("used_pusd", "idle_pusd", "unavailable_pusd")
    )
    api, ops = survey.api_pusd, survey.standing.fixed.ops_pusd
    total = used + idle + down + ops + api + survey.adjusted_pusd
    inks = theme.OWN, theme.inks().idle, theme.DOWN
    own = zip(("used", "idle", "unavailable"), (used, idle, down), inks, strict=True)
    parts = [
        theme.big(formatting.money(total), size="mid"),
        theme.shares(
            (used, theme.OWN),
            (idle, theme.inks().idle),
            (down, theme.DOWN),
            (float(ops), theme.OPS),
            (api, theme.API),
        ),
        theme.rows(
            *own_rows(survey, *own),
            *ops_rows(survey),
            ("APIs", formatting.money(api), theme.API),
            *adjustment_rows(survey),
        ),
    ]
    if display.now().money is None and (others := currency.lines(view, total)):
        parts.append(theme.small(*others))
    if survey.unpriced:
        parts.append(
            theme.small(
                f"**{formatting.plural(survey.unpriced, 'answer')}** without a price, not in here"
            )
        )
    theme.card("Spent", *parts, about="spend")


def _show_served(view: DashboardView, survey: Survey) -> None:
    """Draw the share of answers that met the SLO, with refused requests in separate rows."""
    refused = sum(row.requests for row in reads.refusals(view))
    own, api = (slo_share(survey.cells, backend) for backend in ("own", "api"))
    every = slo_share(survey.cells, None)
    tokens = Counter[str]()
    for cell in survey.cells:
        if cell.is_answered and cell.kind in CONVERSATION:  # ranked documents are not prompts
            tokens[cell.backend] += cell.tokens
    share = tokens["own"] / (tokens.total() or 1)
    theme.card(
        "Answers inside the SLO",
        theme.big(formatting.percent(every, digits=1), size="mid"),
        theme.rows(
            ("Own engines", formatting.percent(own, digits=1), None),
            ("APIs", formatting.percent(api, digits=1), None),
            *refused_rows(survey.cells, refused),
        ),
        *slo_blocks.blocks(view),
        theme.shares((tokens["own"], theme.OWN), (tokens["api"], theme.API)),
        theme.rows(
            ("Tokens of chats from own engines", formatting.percent(share), theme.OWN),
            ("Tokens of chats, input + output", formatting.tokens(tokens.total()), None),
        ),
        about="slo",
    )


def _only_apis(view: DashboardView) -> bool:
    cells = reads.recent(view, SPILL_MINUTES)
    return any(cell.spill_reason is not None for cell in cells) and not any(
        cell.backend == "own" for cell in cells
    )


def _show_spilling(view: DashboardView) -> None:
    cells = reads.recent(view, SPILL_MINUTES)
    spills = Counter[str | None]()
    own = 0
    for cell in cells:
        if cell.spill_reason is not None:
            spills[cell.spill_reason] += cell.attempts
        own += cell.attempts if cell.backend == "own" else 0
    title = f"Spilling right now (last {SPILL_MINUTES} minutes)"
    if not spills:
        more = "No request for an own model in these minutes."
        if own:
            more = f"{formatting.plural(own, 'request')}, every one answered by own engines."
        theme.card(title, theme.big("Nothing", size="mid"), theme.small(more), about="overflow")
        return
    total = spills.total()
    theme.card(
        title,
        theme.big(f"{formatting.plural(total, 'request')} to APIs", size="mid"),
        theme.shares((own, theme.OWN), (total, theme.API)),
        theme.rows(
            *(
                (formatting.sentence(formatting.reason(code)), formatting.count(n), None)
                for code, n in spills.most_common(4)
            ),
            ("Stayed on own engines", formatting.count(own), theme.OWN),
        ),
        about="overflow",
    )


def _empty() -> None:
    st.info(
        "Nothing has been asked yet. Send a request through the gateway, and the answer appears "
        f"here within seconds: `curl {admin_client.address()}/v1/chat/completions ...` with a "
        "key from "
        "`breakeven keys create`. `make demo` shows this page with simulated traffic.",
        icon=":material/rocket_launch:",
    )
