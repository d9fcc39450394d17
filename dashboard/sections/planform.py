"""Form of a plan: GPU, rate and speed, horizon, terms, purchase, ops.

Every field is in the URL (`bind`); fields that depend on a GPU or a model have its name in their
key.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import fields, formatting
from dashboard.data import entries, reads
from dashboard.data.reads import DashboardView
from dashboard.planning import BASIS, HIDDEN_PEAKS_DUTY, PlanInputs, PlanTraffic
from ledger.economics.cost import SECONDS_PER_HOUR
from ledger.economics.purchase import Commitment, Purchase
from ledger.fleet.entered_offers import gpu_prices
from ledger.fleet.market import GpuOffer, estimate, models
from ledger.fleet.pool_records import ContractVersion
from ledger.money import usd_to_pusd_rounded
from ledger.reports.survey import Survey

FIELDS = frozenset((
    "gpu", "gpu-model", "horizon", "growth", "interest", "off1", "off3", "price", "life",
    "residual", "power", "ops", "ops-rate", "plan-spares", "gpus", "spot", "spot-lost",
))  # fmt: skip
YEAR, THREE_YEARS = 12, 36
SECONDS_PER_MINUTE = 60
BIND: Any = "query-params"
MOST = 1e6  # dollars an hour, tokens a second


@dataclass(frozen=True, slots=True)
class PlanForm:
    """A GPU of the catalog, its throughput, and the sources of both."""

    gpu: str
    model: str
    usd_per_hour: float | None
    rate_source: str
    tokens_per_s: float | None
    speed_source: str
    spot_usd: float | None = None


def pick_gpu(view: DashboardView, survey: Survey) -> PlanForm:
    """Draw the choice of GPU and model; cost and throughput are in the fields below."""
    known = reads.market(view)
    own = {version.gpu_type: version for version in survey.contracts}
    names = [*dict.fromkeys([*own, *(gpu.name for gpu in known)])] or ["GPU"]
    left, right = st.columns(2)
    name = left.selectbox("GPU", names, key="gpu", index=_first(names, known, own), bind=BIND)
    listed = next((gpu for gpu in known if gpu.name == name), None)
    contract = own.get(name)
    served = _served_speed(view, survey, contract)
    # Models measured on this GPU come first, so that the fields are not empty.
    measured = sorted(
        models(known), key=lambda each_model: _speed(known, listed, each_model)[0] is None
    )
    offers = [*([] if served is None else [served[1]]), *measured] or ["none"]
    model = right.selectbox("Model, as measured", offers, key="gpu-model", bind=BIND)
    speed, why = _speed(known, listed, model)
    if served is not None and model == served[1]:
        speed, why = served
    rate, source = None, "no public price is in the catalogue"
    if contract is not None and contract.pusd_per_hour:
        rate = contract.pusd_per_hour / 1e12
        source = f"contract of pool {contract.pool}: {contract.source or 'no source given'}"
    elif listed is not None and listed.low_pusd_per_hour:
        rate = listed.low_pusd_per_hour / 1e12
        source = _source_text(listed)
    spot = gpu_prices(entries.gpu_entries(view), view.now_us, "spot").get(name)
    spot_usd = None if spot is None else spot[0].pusd / 1e12
    return PlanForm(name, model, rate, source, speed, why, spot_usd)


def _source_text(listed: GpuOffer) -> str:
    """Return the source and date of the lowest rate, with which the plan begins."""
    if listed.lowest_source is None:
        return "no source is stated"
    source, seen = listed.lowest_source
    return source if seen is None else f"{source}, seen {seen}"


def _served_speed(
    view: DashboardView, survey: Survey, contract: ContractVersion | None
) -> tuple[float, str] | None:
    """Return tokens per second of one GPU of a pool of this type, at its own traffic."""
    if contract is None or contract.pool not in survey.pools:
        return None
    able = survey.pools[contract.pool].capability
    if able is None:
        return None
    speed = float(able.per_minute / SECONDS_PER_MINUTE / contract.gpus)
    # The period is in the text, so that another period resets the field.
    return speed, f"as pool {contract.pool} served in {view.words}"


def _first(names: list[str], known: tuple[GpuOffer, ...], own: dict[str, Any]) -> int:
    """Return the index of an own GPU, else of the first one with measurement and public price."""
    good = (gpu.name for gpu in known if gpu.serving and gpu.low_pusd_per_hour)
    return 0 if own else names.index(next(good, names[0]))


def _speed(
    known: tuple[GpuOffer, ...], gpu: GpuOffer | None, model: str
) -> tuple[float | None, str]:
    found = None if gpu is None else estimate(known, gpu, model)
    if found is None or gpu is None:
        return None, f"nothing is known of {model} on it: measure with `breakeven engine bench`"
    speed = float(found.tokens_per_s(BASIS))
    throughput = found.measured
    promise = (
        f"{throughput.source}; first token within {throughput.ttft_ms_p99:.0f} ms (p99), "
        f"{throughput.tpot_ms_p90:.0f} ms a token (p90), "
        f"{throughput.input_per_output:g} input tokens an output token"
    )
    if found.scaled == 1:
        return speed, f"measured: {promise}"
    return (
        speed,
        f"estimated by memory bandwidth, {float(found.scaled):.2f} x {found.on}: {promise}",
    )


def figures_of(survey: Survey, chosen: PlanForm, traffic: PlanTraffic) -> PlanInputs:
    first, second, third, fourth = st.columns(4, vertical_alignment="bottom")
    suffix = f"{chosen.gpu}"
    rate = fields.number(
        first, "Rate, USD per GPU-hour", (0.0, MOST), chosen.usd_per_hour, step=0.1,
        placeholder="enter your GPU rate", key=f"rate-{suffix}", bind=BIND,
    )  # fmt: skip
    speed = fields.number(
        second, f"Tokens a second of one GPU, {BASIS}", (0.0, MOST), chosen.tokens_per_s,
        step=100.0, placeholder="measure, or enter",
        key=f"speed-{suffix}-{chosen.model}", format="%.0f", bind=BIND,
    )  # fmt: skip
    share = float(100 * HIDDEN_PEAKS_DUTY) if traffic.hidden_peaks else 100.0
    duty = fields.number(
        third, "Hours in use, % of that speed", (1.0, 100.0), share, step=5.0,
        key=f"duty-{share:.0f}", bind=BIND,
        help="The share of a GPU's speed that traffic can use. Minutes of real load have their "
        "peaks in them; an export by the day hides peaks of 1.9 to 3.3 times the mean.",
    )  # fmt: skip
    months = fields.number(
        fourth, "Horizon, months", (1, 120), THREE_YEARS, key="horizon", bind=BIND
    )
    st.caption(f"Rate: {chosen.rate_source}. Speed: {chosen.speed_source}.")
    with st.expander("Growth, interest, commitments, purchase, operations"):
        growth, discount, value, three = _terms()
        purchase = _purchase()
        operations = _operations(survey)
        spot = _spot(chosen)
    return PlanInputs(
        months=int(months),
        growth=_share(growth),
        discount_per_year=_share(discount),
        pusd_per_hour=_pusd(rate),
        tokens_per_s=None if not speed else Fraction(str(speed)),
        duty=_share(duty),
        terms=tuple(
            Commitment(length, _share(off)) for length, off in ((YEAR, value), (THREE_YEARS, three))
        ),
        purchase=purchase,
        **operations,
        **spot,
    )


def _terms() -> tuple[float, float, float, float]:
    columns = st.columns(4, vertical_alignment="bottom")
    return (
        fields.number(
            columns[0], "Growth, % a month", (-50.0, 100.0), 0.0, step=1.0, key="growth", bind=BIND
        ),
        fields.number(
            columns[1], "Interest, % a year", (0.0, 100.0), 8.0, step=1.0, key="interest", bind=BIND
        ),
        fields.number(
            columns[2],
            "Discount, 1 year reserved, %",
            (0.0, 99.0),
            20.0,
            step=5.0,
            key="off1",
            bind=BIND,
        ),
        fields.number(
            columns[3],
            "Discount, 3 years reserved, %",
            (0.0, 99.0),
            40.0,
            step=5.0,
            key="off3",
            bind=BIND,
        ),
    )


def _purchase() -> Purchase | None:
    columns = st.columns(4, vertical_alignment="bottom")
    price = fields.number(
        columns[0], "Price of one GPU with its share of the machine, USD", (0.0, 1e8), None,
        step=1000.0, placeholder="enter to compare buying", key="price", bind=BIND,
    )  # fmt: skip
    life = fields.number(columns[1], "Amortised over, months", (1, 120), 48, key="life", bind=BIND)
    left = fields.number(
        columns[2],
        "Residual value, % of price",
        (0.0, 100.0),
        20.0,
        step=5.0,
        key="residual",
        bind=BIND,
    )
    power = fields.number(
        columns[3], "Power, space, support, USD per GPU-hour", (0.0, MOST), 0.25, step=0.05,
        key="power", bind=BIND,
    )  # fmt: skip
    if not price:
        return None
    return Purchase(_pusd(price) or 0, int(life), _share(left), _pusd(power) or 0)


def _operations(survey: Survey) -> dict[str, Any]:
    """Return the ops cost of the contracts; nothing is assumed if they state none."""
    columns = st.columns(4, vertical_alignment="bottom")
    paid = [contract for contract in survey.contracts if contract.ops_seconds_per_week]
    week = sum(version.ops_seconds_per_week for version in paid) / SECONDS_PER_HOUR
    each = max((version.ops_pusd_per_hour for version in paid), default=0) / 10**12
    hours = fields.number(
        columns[0], "Ops, hours a week", (0.0, 500.0), week or None, step=1.0, key="ops", bind=BIND,
        placeholder="not entered",
    )  # fmt: skip
    rate = fields.number(
        columns[1], "Ops, USD an hour", (0.0, 1000.0), each or None, step=5.0, key="ops-rate",
        bind=BIND, placeholder="not entered",
    )  # fmt: skip
    spares = fields.number(columns[2], "Spares (N+1)", (0, 8), 0, key="plan-spares", bind=BIND)
    gpus = fields.number(
        columns[3],
        "GPUs reserved or bought (0: the cheapest number)",
        (0, 512),
        0,
        key="gpus",
        bind=BIND,
    )
    return {
        "ops_hours_per_week": None if hours is None else Fraction(str(hours)),
        "ops_pusd_per_hour": None if rate is None else _pusd(rate) or 0,
        "spares": int(spares),
        "gpus": int(gpus) or None,
    }


def _spot(chosen: PlanForm) -> dict[str, Any]:
    """Return the spot price entered for this GPU on Rates; none is assumed."""
    columns = st.columns(4, vertical_alignment="bottom")
    rate = fields.number(
        columns[0], "Spot, USD per GPU-hour", (0.0, MOST), chosen.spot_usd, step=0.1, key="spot",
        placeholder="enter to compare spot", bind=BIND,
    )  # fmt: skip
    lost = fields.number(
        columns[1], "Spot hours taken away, %", (0.0, 99.0), 10.0, step=5.0, key="spot-lost",
        bind=BIND, help="They serve nothing, and what they would have served goes to the API.",
    )  # fmt: skip
    return {"spot_pusd_per_hour": _pusd(rate), "spot_lost": _share(lost)}


def _share(percent: float) -> Fraction:
    return Fraction(str(percent)) / 100


def _pusd(usd: float | None) -> int | None:
    return usd_to_pusd_rounded(Decimal(str(usd))) if usd else None


def inputs_of(traffic: PlanTraffic, figures: PlanInputs, chosen: PlanForm) -> list[tuple[str, str]]:
    each = formatting.money(Fraction(traffic.average.pusd_per_token) * 10**6)
    rows = [
        (
            "Traffic",
            f"{traffic.name}: {formatting.tokens(traffic.per_month)} tokens a month ({BASIS})",
        ),
        ("API price", f"{each} per 1M tokens ({BASIS}), the average of this traffic"),
        (
            "GPU rate",
            "not given"
            if figures.pusd_per_hour is None
            else f"{formatting.money(figures.pusd_per_hour)} an hour ({chosen.rate_source})",
        ),
        (
            "One GPU serves",
            "not given"
            if figures.tokens_per_s is None
            else f"{float(figures.tokens_per_s):,.0f} tokens a second ({BASIS}) x "
            f"{formatting.percent(figures.duty)} duty ({chosen.speed_source})",
        ),
        ("Horizon", f"{figures.months} months"),
        ("Growth", f"{formatting.percent(figures.growth, digits=1)} a month"),
        ("Interest", f"{formatting.percent(figures.discount_per_year, digits=1)} a year"),
        (
            "Operations",
            "not entered"
            if figures.ops_hours_per_week is None or figures.ops_pusd_per_hour is None
            else f"{float(figures.ops_hours_per_week):g} h a week at "
            f"{formatting.money(figures.ops_pusd_per_hour)} an hour",
        ),
        ("Spares", str(figures.spares)),
        *(
            (f"Reserved {term.months} months", f"{formatting.percent(term.discount)} off the rate")
            for term in figures.terms
        ),
    ]
    bought = figures.purchase
    if bought is not None:
        rows.append(
            (
                "Bought",
                (
                    f"{formatting.money(bought.price_pusd)} a GPU, amortised over "
                    f"{bought.life_months} months "
                    f"to {formatting.percent(bought.residual)} "
                    f"({formatting.money(bought.amortised_pusd_per_month)} a month), "
                    f"{formatting.money(bought.power_pusd_per_hour)} an hour to run"
                ),
            )
        )
    return rows


def is_of_plan(name: str) -> bool:
    """Return whether a name in the URL is one of this form's fields."""
    return name in FIELDS or name.startswith(("rate-", "speed-", "duty-"))
