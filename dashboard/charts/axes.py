"""Axes, legends, colors, currency and time zone shared by all charts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt
from altair.utils.schemapi import disable_debug_mode

from dashboard import display, formatting
from dashboard.theme import inks
from ledger.money import PUSD_PER_USD

Records = Sequence[Mapping[str, Any]]
Chart = Any  # Altair's charts, layers and concatenations have no common public type
TIME = "%d %b %H:%M"
CLICKED = "clicked"  # the selection of a chart whose bars are clicked
LONG = 22  # characters of a legend's name; two of them fit beside each other on a phone
LEGEND_LINE = 20  # pixels
MOST_TICKS = 10
LETTER = 3.2  # pixels, half a label character: labels closer to the end would be cut off
_STEPS_S = (1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200,
            86_400, 172_800, 432_000, 864_000)  # fmt: skip


def priced(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records with `usd` in the displayed currency, and `shown` as tooltip text."""
    return [
        {**record, "usd": amount(record["usd"]), "shown": dollar_text(record["usd"])}
        for record in records
    ]


def amount(usd: float) -> float:
    """Return dollars in the displayed currency, for an axis."""
    return usd * float(display.now().per_usd)


def money_unit(unit: str) -> str:
    """Return the unit of an axis: `dollars a month`, or the displayed currency a month."""
    return display.now().unit_of(unit)


def whole_money() -> str:
    """Return the D3 format of an axis of large amounts."""
    return "$,.0f" if display.now().money is None else ",.0f"


def small_money() -> str:
    """Return the D3 format of amounts that two significant digits describe well enough."""
    return "$.2~r" if display.now().money is None else ".2~r"


def dollar_text(usd: float) -> str:
    """Return an amount for a tooltip, where a Vega format would round a small one to zero.

    Another currency is followed by the dollars.
    """
    text = formatting.money(round(usd * PUSD_PER_USD))
    return text if display.now().money is None else f"{text} ({text.exact})"


class ChartRows(alt.InlineData):
    """Inline values that are plain already, so Altair need not validate or copy each one."""

    def __init__(self, values: list[dict[str, Any]], **known: Any) -> None:
        kept = {"format": alt.Undefined, "name": alt.Undefined, **known, "values": values}
        object.__setattr__(self, "_args", ())
        object.__setattr__(self, "_kwds", kept)

    def __deepcopy__(self, _memo: Any) -> "ChartRows":
        return self


def trust_charts() -> None:
    """Disable Altair's schema validation in this process, which took most of a page's time.

    The tests of charts keep the validation.
    """
    disable_debug_mode()


def inline_data(records: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Return inline values; times are milliseconds at which a UTC axis shows local time."""
    drawn_s = display.now().drawn_s
    values = [
        {
            name: drawn_s(value) * 1000 if isinstance(value, datetime) else value
            for name, value in record.items()
        }
        for record in records
    ]
    return ChartRows(values)


def colour_encoding(colours: Mapping[str, str], *, columns: int = 2) -> alt.Color:
    """Return a color encoding; long legend names use one column, as legends do not wrap."""
    columns = _legend_columns(colours, columns)
    return alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(orient="top", labelLimit=320, symbolType="square", columns=columns),
    )


def _legend_columns(names: Iterable[str], columns: int = 2) -> int:
    return 1 if any(len(name) > LONG for name in names) else columns


def legend_height(names: Iterable[str]) -> int:
    """Return the height of a legend in pixels; the plot keeps its own height below it."""
    named = list(names)
    return LEGEND_LINE * math.ceil(len(named) / _legend_columns(named))


def axis_of(*, money: bool) -> alt.Axis:
    """Return an axis with k for thousands; values below 1 are written in full."""
    sign = "$" if money and display.now().money is None else ""
    small = f"abs(datum.value) < 1 ? format(datum.value, '{sign}.2~r')"
    return alt.Axis(labelExpr=f"{small} : format(datum.value, '{sign}~s')", tickCount=6)


def time_axis(field: str, instants: Sequence[datetime]) -> alt.X:
    """Return a time axis in local time; the labels are precise enough that all ticks differ."""
    low, high = (display.now().drawn_s(edge(instants)) for edge in (min, max))
    high = max(high, low + 1)  # a single time needs a range, too
    step = next((number for number in _STEPS_S if high - low <= MOST_TICKS * number), None)
    step = step or _STEPS_S[-1] * math.ceil((high - low) / (MOST_TICKS * _STEPS_S[-1]))
    form = "%d %b" if step >= 86_400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    if step < 86_400 and high - low > 86_400:
        form = f"%d %b {form}"
    ticks = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    values = [_moment(tick) for tick in ticks]
    axis = alt.Axis(
        grid=False,
        labelOverlap=True,
        labelFlush=LETTER * len(_moment_text(low, form)),
        values=values,
        format=form,
    )
    scale = alt.Scale(type="utc", domain=[_moment(low), _moment(high)], nice=False)
    return alt.X(f"{field}:T", title=None, axis=axis, scale=scale)


def _moment_text(at_s: float, form: str) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime(form)


def _moment(at_s: float) -> alt.DateTime:
    """Return a time for an axis; a bare number would be read as a year."""
    at = datetime.fromtimestamp(at_s, UTC)
    return alt.DateTime(
        year=at.year, month=at.month, date=at.day, hours=at.hour, minutes=at.minute,
        seconds=at.second, milliseconds=at.microsecond // 1000, utc=True,
    )  # fmt: skip


def markers(marks: Records, x: alt.X) -> list[Any]:
    """Return dashed rules at the times `at` of `marks`, with `label`, and `told` on hover."""
    base = alt.Chart(inline_data(marks)).encode(
        x=x,
        tooltip=[
            alt.Tooltip(
                "utcyearmonthdatehoursminutes(at):T", title=formatting.zoned("at"), format=TIME
            ),
            alt.Tooltip("told:N", title="what"),
        ],
    )
    ink = inks().ink
    rules = base.mark_rule(color=ink, strokeDash=[3, 3], strokeWidth=1.2)
    texts = base.mark_text(align="left", baseline="top", dx=4, color=ink, fontSize=12).encode(
        y=alt.value(0), text=alt.Text("label:N")
    )
    return [rules, texts]


def clickable(chart: Any, field: str) -> Chart:
    """Make bars clickable; the selection `CLICKED` holds the field of the clicked bar."""
    return chart.add_params(alt.selection_point(name=CLICKED, fields=[field], toggle=False))


def clean(chart: Any) -> Any:
    """Set the chart's theme in place and return it; a copy would copy all values."""
    now = inks()
    chart.config = alt.Config(
        view=alt.ViewConfig(strokeWidth=0),
        axis=alt.AxisConfig(
            labelColor=now.muted, titleColor=now.muted, gridColor=now.grid, domainColor=now.line,
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal",
        ),
        legend=alt.LegendConfig(
            labelFontSize=12.5, labelColor=now.ink, titleColor=now.muted, offset=6, padding=0
        ),
    )  # fmt: skip
    return chart
