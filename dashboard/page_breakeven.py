"""Cost against volume: where own GPUs get cheaper than APIs, where they end, and where we are.

All amounts are restated for a month of 720 hours at the pace of the period. Own cost is a
staircase of whole GPUs plus the API cost of what overflows them, minute by minute, over the real
load curve of the period.
"""

from fractions import Fraction

import streamlit as st

from dashboard import charts, data, look, words
from dashboard.data import View
from dashboard.figures import dollars, labels
from dashboard.ladder import Ladder, Reach, curves, ladder, marks
from dashboard.sentences import cures
from ledger.economics import TokenBasis, Volume, allocation_unit_cost
from ledger.standing import Against
from ledger.survey import Survey

BELIEVED = Fraction(1, 2)
COLOURS = {Against.SUBSTITUTE: look.SUBSTITUTE, Against.SAME_WEIGHTS: look.SAME_WEIGHTS}


def show(view: View) -> None:
    first, left, middle, right = st.columns([1.25, 1, 1.8, 0.8])
    basis = first.segmented_control(
        "Token basis", list(TokenBasis), default=TokenBasis.INPUT_OUTPUT, required=True, key="basis"
    )
    view = View(view.url, view.period, view.team, view.now_us, basis)
    survey = data.survey(view)
    for text in labels(survey):
        look.label(text)
    standing = survey.standing
    rated = [bill for bill in standing.bills if bill.rated and survey.minutes.get(bill.pool)]
    if not rated or not any(verdict.average for verdict in standing.verdicts):
        _nothing(survey)
        return
    pool = left.selectbox("Pool", [bill.pool for bill in rated], key="pool")
    against = middle.selectbox(
        "What overflows is bought at",
        [verdict.against for verdict in standing.verdicts if verdict.average],
        format_func=lambda one: _named(survey, one),
        key="against",
    )
    spares = right.number_input("Spares (N+1)", 0, 8, 0, key="spares")
    steps = ladder(survey, pool, against, spares=int(spares))
    if steps is None:
        _nothing(survey)
        return
    reach = st.segmented_control(
        "Volumes", list(Reach), default=Reach.TODAY, required=True, key="reach"
    )
    _chart(survey, steps, basis, reach)
    first, second = st.columns([1, 1])
    with first:
        _advice(steps, basis)
    with second:
        _prices(survey, basis)


def _chart(survey: Survey, steps: Ladder, basis: TokenBasis, reach: Reach) -> None:
    lines, colours = curves(survey, steps, COLOURS, reach)
    chart = charts.break_even(
        lines,
        colours=colours,
        marks=marks(survey, steps, reach),
        limit=None if steps.capacity is None else float(steps.capacity),
        basis=basis,
    )
    st.altair_chart(chart, width="stretch")
    known = "measured" if steps.measured else "a floor: the busiest minutes seen"
    st.caption(
        f"Token basis: {basis}. Shaded, where in sight: beyond the capacity of "
        f"{steps.unit(steps.gpus)} inside the SLO ({known}). Solid own line: as configured, "
        "overflow bought. "
        "Dashed own line: the best number of GPUs at each volume. Diamonds: break-even. Overflow "
        f"is counted in windows of {steps.window_minutes} min" + believed(steps.explained)
    )


def believed(explained: Fraction | None) -> str:
    """How far the modelled overflow agrees with the real one."""
    if explained is None:
        return "."
    share = f"; so counted it is {words.percent(explained)} of what really spilled."
    if explained >= BELIEVED:
        return share
    return share + (
        " **The engines spilled long before the capacity drawn here**, which is that of short "
        "requests: costs with fewer GPUs are too low, and break-even may be out of reach."
    )


def _advice(steps: Ladder, basis: TokenBasis) -> None:
    """The best N and where each N is best, per month."""
    best = steps.best
    rows = []
    for band in steps.bands:
        end = "and more" if band.end is None else f"to {words.tokens(band.end * steps.scale)}"
        name = f"{words.tokens(band.start * steps.scale)} {end}"
        mark = " (now)" if band == best.band else ""
        rows.append((f"{name}{mark}", steps.unit(band.gpus) if band.gpus else "no own GPU", None))
    text = steps.unit(best.gpus) if best.gpus else "No own GPU"
    look.card(
        f"Cheapest at the present {words.tokens(steps.volume * steps.scale)} tokens a month asked",
        look.big(text, size="mid"),
        look.small(
            f"costs **{words.usd(best.total_pusd * steps.scale)}** a month, overflow included; "
            + (
                "that is what runs."
                if best.gpus == steps.gpus
                else f"what runs ({steps.unit(steps.gpus)}) costs "
                f"**{words.usd(steps.configured_pusd * steps.scale)}**."
            ),
            f"Tokens a month ({basis}) and the number that is cheapest there:",
        ),
        look.rows(*rows),
    )


def _prices(survey: Survey, basis: TokenBasis) -> None:
    """Unit costs on the one basis, and what each comparator's verdict says."""
    standing = survey.standing
    served = Volume(standing.served.tokens, standing.served.basis)
    own = allocation_unit_cost(fixed_pusd=standing.fixed.total_pusd, served=served)
    rows = [
        (
            "Own, allocation basis (whole bill over tokens served)",
            "nothing served" if own is None else words.usd(Fraction(own.pusd_per_token) * 10**6),
            look.OWN,
        )
    ]
    notes = []
    for verdict in standing.verdicts:
        if verdict.average is not None:
            price = words.usd(Fraction(verdict.average.pusd_per_token) * 10**6)
            rows.append((f"{', '.join(verdict.comparators)}", price, COLOURS[verdict.against]))
        if verdict.even is not None and verdict.even.volume is not None:
            even = Fraction(verdict.even.volume.tokens) * 720 / standing.hours
            notes.append(
                f"Break-even against the {verdict.against}: "
                f"**{words.tokens(even)}** tokens a month."
            )
        notes += cures(standing, verdict)
    look.card(f"Dollars per 1M tokens, {basis}", look.rows(*rows), look.small(*notes))


def _named(survey: Survey, against: Against) -> str:
    for verdict in survey.standing.verdicts:
        if verdict.against is against:
            return f"{', '.join(verdict.comparators)} ({against})"
    return str(against)


def _nothing(survey: Survey) -> None:
    if survey.standing.unrated:
        pools = ", ".join(f"`{pool}`" for pool in survey.standing.unrated)
        st.info(
            f"Enter your GPU rate for {pools} (`pools.NAME.gpu.usd_per_hour`): without it there is "
            "no own cost to draw.",
            icon=":material/price_change:",
        )
        return
    cost = dollars(survey.own_pusd)
    st.info(
        "A break-even chart needs own engines that have answered requests, and a comparator "
        f"(`models.NAME.compare_with`). In this period own GPUs cost \\${cost:,.2f} and answered "
        "nothing that can be compared.",
        icon=":material/show_chart:",
    )
