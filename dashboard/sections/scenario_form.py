"""What if: sliders over a pool's month, what moves the result most, what would have to be true.

Every slider, the scenario's name and whose it is stand in the address: a bookmark saves a scenario,
the address shares it.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import fields, formatting, theme
from dashboard.charts import plots, purchase
from dashboard.data import reads
from dashboard.data.reads import DashboardView
from dashboard.scenario import SWING, ScenarioBase, bars, base_case, lines
from dashboard.sections.saved_scenarios import scenarios
from dashboard.volume_steps import VolumeSteps
from ledger.economics.cost import TokenBasis
from ledger.economics.sensitivity import BreakEvenCase, outcome, tornado
from ledger.economics.thresholds import Threshold, ThresholdInput, thresholds
from ledger.reports.survey import Survey

BIND: Any = "query-params"
BASIS = TokenBasis.INPUT_OUTPUT
WHOSE = ("pool", "whatif-against")  # in the address beside what is turned


def show_scenario(view: DashboardView, survey: Survey, pool: str, steps: VolumeSteps) -> None:
    """The section below the chart; volumes are always input + output here, and say so."""
    st.subheader("What if", anchor=False)
    if view.basis is not BASIS:
        st.caption(f"Scenarios count {BASIS} tokens: choose that basis above to turn them.")
        return
    verdicts = [
        each_verdict for each_verdict in steps.standing.verdicts if each_verdict.average is not None
    ]
    names = {str(each_verdict.against): each_verdict for each_verdict in verdicts}
    left, right = st.columns(2)
    name = left.text_input(
        "Name of this scenario", key="scenario", bind=BIND, max_chars=60,
        placeholder="as it is today",
    )  # fmt: skip
    against = right.selectbox("Against the", list(names), key="whatif-against", bind=BIND)
    verdict = names[against]
    book = reads.price_book(view)
    price = next((find for it in verdict.comparators if (find := book.find(it, view.now_us))), None)
    base = base_case(survey, pool, steps, verdict, price)
    case = _edited_case(base.case)
    scenarios(view, "breakeven", lambda name: name.startswith("x-") or name in WHOSE)
    _answers(base, case, name)
    records, marks, capacity = lines(case)
    colours = {"own GPUs, overflow bought": theme.OWN, "API": theme.API}
    chart = plots.break_even(records, colours=colours, marks=marks, limit=capacity, basis=BASIS)
    theme.chart(chart, about="breakeven")
    st.caption(
        f"Against {', '.join(verdict.comparators)}, at "
        f"{formatting.money(Fraction(case.avoided.pusd_per_token) * 10**6)} per 1M tokens "
        f"({BASIS}): "
        + (
            "its listed prices at this mix. "
            if base.listed
            else "the price book has no prices by kind for it, so mix and cache hits move nothing. "
        )
        + "Shaded: beyond capacity, bought. The address of this page is the scenario: bookmark it, "
        "send it to share it, or save it by name."
    )
    first, second = st.columns(2)
    with first:
        st.markdown("**What moves the result most**")
        found = tornado(case, share=SWING)
        result = outcome(case).result_pusd
        swing = int(100 * SWING)
        chart = purchase.tornado(bars(found, result), share=swing)
        theme.chart(chart, about="breakeven")
        st.caption(f"Each input alone, {swing} % less and {swing} % more; shares end at 100 %.")
    with second:
        _would_have_to_be(case)


def _edited_case(case: BreakEvenCase) -> BreakEvenCase:
    """The case as the sliders have it; each begins where the books are."""
    item = st.columns(4, vertical_alignment="bottom")
    rate = fields.number(
        item[0], "GPU rate, USD an hour", (0.0, 1e6),
        fields.default_following("x-rate", _usd(case.gpu_pusd_per_hour)), step=0.05, format="%.3f",
        key="x-rate", bind=BIND,
    )  # fmt: skip
    now = fields.default_following("x-gpus", case.gpus)
    gpus = fields.number(item[1], "GPUs", (1, 512), now, key="x-gpus", bind=BIND)
    spares = fields.number(item[2], "Redundancy (spares)", (0, 64), 0, key="x-spares", bind=BIND)
    ops = fields.number(
        item[3], "Ops, hours a week", (0.0, 500.0),
        fields.default_following("x-ops", float(case.ops_hours_per_week)), step=0.5,
        key="x-ops", bind=BIND,
    )  # fmt: skip
    two = st.columns(4, vertical_alignment="bottom")
    duty = _slider(two[0], "Duty, %", 1, case.duty, "x-duty")
    mix = _slider(two[1], "Input, % of tokens", 0, case.input_share, "x-mix")
    hits = _slider(two[2], "Cache hits, % of input", 0, case.cached_share, "x-hits")
    volume = two[3].slider("Volume, % of today", 0, 1000, 100, step=5, key="x-volume", bind=BIND)
    level = st.slider("API price, % of today", 5, 300, 100, step=5, key="x-price", bind=BIND)
    factor = Fraction(level, 100)
    return replace(
        case,
        gpu_pusd_per_hour=_book_value(case.gpu_pusd_per_hour, rate),
        gpus=int(gpus),
        spares=int(spares),
        ops_hours_per_week=Fraction(str(ops)),
        duty=_share(case.duty, duty),
        input_share=_share(case.input_share, mix),
        cached_share=_share(case.cached_share, hits),
        served_tokens=case.served_tokens * Fraction(volume, 100),
        input_price=case.input_price * factor,
        cached_price=case.cached_price * factor,
        output_price=case.output_price * factor,
    )


def _slider(place: DeltaGenerator, label: str, least: int, share: Any, key: str) -> int:
    now = fields.default_following(key, _percent(share))
    return int(place.slider(label, least, 100, now, key=key, bind=BIND))


def _usd(pusd: Any) -> float:
    return round(float(pusd) / 1e12, 3)


def _percent(share: Fraction | Any) -> int:
    return round(100 * float(share))


def _book_value(now: Any, usd: float) -> Any:
    """The books' own figure while nobody turned it: what is shown is rounded."""
    return now if usd == _usd(now) else Fraction(str(usd)) * 10**12


def _share(now: Any, percent: int) -> Fraction:
    return Fraction(now) if percent == _percent(now) else Fraction(percent, 100)


def _answers(base: ScenarioBase, case: BreakEvenCase, name: str | None) -> None:
    before, after = outcome(base.case), outcome(case)
    title = name or "this scenario"
    can = case.configuration.capacity.tokens
    columns = st.columns(3)
    with columns[0]:
        even = (
            "no volume" if after.volume_tokens is None else formatting.tokens(after.volume_tokens)
        )
        was = "none" if before.volume_tokens is None else formatting.tokens(before.volume_tokens)
        theme.card(
            f"Break-even in {title}, tokens a month ({BASIS})",
            theme.big(even, size="mid"),
            theme.small(f"As it is today: **{was}**"),
            about="breakeven",
        )
    with columns[1]:
        reach = "within reach" if after.feasible else "beyond capacity: cannot break even"
        theme.card(
            f"Capacity inside the SLO, tokens a month ({BASIS})",
            theme.big(formatting.tokens(can), size="mid"),
            theme.small(
                f"Break-even is {reach}; asked are **{formatting.tokens(case.served_tokens)}**"
            ),
            about="capacity",
        )
    with columns[2]:
        good = after.result_pusd >= 0
        word = "made" if good else "lost"
        was_word = "made" if before.result_pusd >= 0 else "lost"
        theme.card(
            "A month of 720 h against the API",
            theme.big(
                formatting.money(abs(Fraction(after.result_pusd))) + f" {word}",
                size="mid",
                tone="be-gain" if good else "be-loss",
            ),
            theme.small(
                f"As it is today: **{formatting.money(abs(Fraction(before.result_pusd)))}** "
                f"{was_word}"
            ),
            about="verdict",
        )


def _would_have_to_be(case: BreakEvenCase) -> None:
    pays = outcome(case).result_pusd >= 0
    title = (
        "How far each may move until it no longer pays" if pays else "What would have to be true"
    )
    rows = [
        (_threshold_name(threshold), _needed_text(threshold, case, pays=pays), None)
        for threshold in thresholds(case)
    ]
    theme.card(f"{title}, each alone", theme.rows(*rows), about="breakeven")


def _threshold_name(threshold: Threshold) -> str:
    return {
        ThresholdInput.GPU_RATE: "GPU rate an hour",
        ThresholdInput.API_PRICE: "API price per 1M tokens",
        ThresholdInput.VOLUME: "Volume, tokens a month",
        ThresholdInput.INPUT_SHARE: "Input, share of tokens",
        ThresholdInput.CACHED_SHARE: "Cache hits, share of input",
        ThresholdInput.OPS_HOURS: "Ops, hours a week",
    }[threshold.name]


def _needed_text(threshold: Threshold, case: BreakEvenCase, *, pays: bool) -> str:
    if threshold.needed is None:
        return "moves, but never so far" if pays else "no value is enough"
    bound = "at most" if threshold.at_most else "at least"
    price = Fraction(case.avoided.pusd_per_token) * 10**6
    needed, now = {
        ThresholdInput.GPU_RATE: (
            formatting.money(threshold.needed),
            formatting.money(threshold.now),
        ),
        ThresholdInput.API_PRICE: (
            formatting.money(threshold.needed * price),
            formatting.money(price),
        ),
        ThresholdInput.VOLUME: (
            formatting.tokens(threshold.needed),
            formatting.tokens(threshold.now),
        ),
        ThresholdInput.OPS_HOURS: (
            f"{float(threshold.needed):.1f} h",
            f"{float(threshold.now):.1f} h",
        ),
    }.get(threshold.name, (formatting.percent(threshold.needed), formatting.percent(threshold.now)))
    return f"{bound} {needed} (is {now})"
