"""Plan as one printable HTML page: answer, chart, every way, inputs, formulas.

The page is self-contained: no script, no URL, the chart as SVG. Every text is escaped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dashboard import formatting
from dashboard.planning import (
    OptionResult,
    PurchasePlan,
    cumulative_records,
    number_of,
    verdict,
)
from dashboard.verdictreport import STYLE, label_lines, verdict_section
from ledger.economics.fleet_verdict import FleetVerdict

Row = tuple[str, str]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760.0, 300.0, 92.0, 34.0, 18.0
_TICKS = 4
SHORT_USD = 1_000
FORMULAS: tuple[Row, ...] = (
    ("Volume of month k", "V x (1 + growth)^(k - 1), a month being 8,760 / 12 hours"),
    ("Own cost of a month", "F(N) + overflow above N GPUs' capacity at SLO, at the API's price"),
    ("Reserved", "N x rate x (1 - discount); terms are renewed whole, what is owed counts"),
    ("Bought", "N x price at the start; power and ops by month; book value back at the end"),
    ("Book value", "price - (price - residual) x min(1, months / life)"),
    ("NPV", "sum of what is paid at the end of month k / (1 + r)^(k / 12)"),
    ("Payback", "the month from whose end on the way never again has cost more than staying"),
)


@dataclass(frozen=True, slots=True)
class PlanFrame:
    """Frame of a printed plan: creation time, labels of the page, fleet verdict."""

    made: str
    labels: tuple[str, ...] = ()
    verdict: FleetVerdict | None = None


def report(found: PurchasePlan, gpu: str, inputs: Sequence[Row], frame: PlanFrame) -> str:
    """Return the whole page. `inputs` are (name, value with its source) pairs."""
    text, more, _ = verdict(found, gpu)
    made, judged = frame.made, frame.verdict
    first = "" if judged is None else verdict_section(judged)
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.traffic.notes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Plan: {escape(text)}</title><style>{STYLE}</style></head><body>"
        f'<p class="m">Breakeven: reserve, rent, buy or stay. {escape(made)}</p>'
        f"{label_lines(frame.labels)}{first}"
        f"<h1>{escape(text)}</h1><p>{escape(more)}</p>"
        f"<h2>Paid until the end of each month, dollars</h2>{_chart(found)}"
        f"<h2>Options</h2>{_ways(found, gpu)}"
        f"<h2>What it rests on</h2>{_table(inputs)}<ul>{notes}</ul>"
        f"<h2>How it is computed</h2>{_table(FORMULAS)}</body></html>"
    )


def _ways(found: PurchasePlan, gpu: str) -> str:
    head = (
        f'<tr><th>Way</th><th class="n">{escape(gpu)}</th><th class="n">NPV of cost</th>'
        '<th class="n">Saved against staying (NPV)</th><th class="n">Payback, month</th></tr>'
    )
    rows = []
    for way in found.ways:
        best = ' class="b"' if way is found.best else ""
        cells = (
            number_of(way.option.gpus),
            formatting.money(way.npv_pusd),
            formatting.money(way.saved_pusd, sign=True),
            "-" if _never_paid_back(way, found) else str(way.payback),
        )
        numbers = "".join(f'<td class="n">{escape(cell)}</td>' for cell in cells)
        rows.append(f"<tr{best}><td>{escape(way.option.name)}</td>{numbers}</tr>")
    return f"<table>{head}{''.join(rows)}</table>"


def _never_paid_back(way: OptionResult, found: PurchasePlan) -> bool:
    """Return whether there is no payback month; a way without GPUs has nothing to pay back."""
    return way.payback is None or way is found.ways[0] or not max(way.option.gpus)


def _table(rows: Sequence[Row]) -> str:
    cells = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(said)}</td></tr>" for name, said in rows
    )
    return f"<table>{cells}</table>"


def _tick(usd: float, top: float) -> str:
    """Return an axis label: `$250k` on a long axis, `$2.50` on a short one."""
    return (
        f"${formatting.tokens(round(usd))}"
        if top >= SHORT_USD
        else formatting.money(round(usd * 10**12))
    )


def round_top(usd: float) -> float:
    """Return the axis end: the least of 1, 2, 4, 6, 8 times a power of ten that fits."""
    if usd <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(usd))
    return next(number * power for number in (1, 2, 4, 6, 8, 10) if number * power >= usd)


def _chart(found: PurchasePlan) -> str:
    records, colours = cumulative_records(found)
    top = round_top(max(record["usd"] for record in records))
    months = found.figures.months

    def x(month: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * month / months

    def y(usd: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * usd / top

    parts = []
    for n in range(_TICKS + 1):
        usd = top * n / _TICKS
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y(usd):.1f}" y2="{y(usd):.1f}" '
            f'stroke="#dde3e0"/><text x="{_LEFT - 6}" y="{y(usd) + 4:.1f}" text-anchor="end" '
            f'font-size="12" fill="#5b6763">{escape(_tick(usd, top))}</text>'
        )
    for month in sorted({0, months, *(months * n // _TICKS for n in range(1, _TICKS))}):
        anchor = "end" if month == months else "middle"
        parts.append(
            f'<text x="{x(month):.1f}" y="{_HEIGHT - 12}" text-anchor="{anchor}" font-size="12" '
            f'fill="#5b6763">{"month " if month == months else ""}{month}</text>'
        )
    for kind, colour in colours.items():
        points = " ".join(
            f"{x(entry['month']):.1f},{y(entry['usd']):.1f}"
            for entry in records
            if entry["kind"] == kind
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>'
        )
    legend = "".join(
        f'<span style="margin-right:1.2em"><span class="k" style="background:{colour}"></span>'
        f"{escape(kind)}</span>"
        for kind, colour in colours.items()
    )
    return (
        f'<p>{legend}</p><svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="Dollars paid until each month by way">{"".join(parts)}</svg>'
    )
