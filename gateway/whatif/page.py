"""Document of a what-if as one HTML file: figures and SVG plots, no scripts, no URLs.

The plots need the dashboard's libraries, which a gateway alone does not install.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

from gateway.whatif.tables import notes, share, tables

OWN, API, OTHER, MUTED = "#0F766E", "#E0912F", "#7A5AF8", "#66736E"
WIDTH, HEIGHT = 1000, 200
ATTAINED = (("own", "attainment_own"), ("API", "attainment_api"), ("all", "attainment"))
STYLE = """
:root {color-scheme: light dark; --ink: #1B2421; --muted: #66736E; --line: #E3E9E6;
  --paper: #FFFFFF;}
@media (prefers-color-scheme: dark) {
  :root {--ink: #E4EAE7; --muted: #9AA8A2; --line: #33403B; --paper: #131A17;}
  svg [fill="#0F766E"] {fill: #2DA79B;} svg [stroke="#0F766E"] {stroke: #2DA79B;}
  svg [fill="#7A5AF8"] {fill: #A794FB;} svg [stroke="#7A5AF8"] {stroke: #A794FB;}
}
body {font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 1240px; padding: 0 1rem;}
h1 {font-size: 1.6rem; margin: 0;} h2 {font-size: 1.05rem; margin: 2rem 0 .4rem;}
h1, p, li {overflow-wrap: anywhere;} p, li {color: var(--muted);} .scroll {overflow-x: auto;}
table {border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .88rem;}
th, td {padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left;}
th, td {white-space: nowrap;}
.n {text-align: right;} .big {display: flex; gap: 1rem; flex-wrap: wrap; margin-top: 1.2rem;}
.card {border: 1px solid var(--line); border-radius: 10px; padding: .7rem 1.1rem;
  min-width: 15rem; overflow-wrap: anywhere;}
.card b {display: block; font-size: 1.7rem;}
svg {max-width: 100%; min-width: 60rem; height: auto;} svg text {fill: var(--ink);}
svg .role-axis-grid line {stroke: var(--line);}
"""


class PlotsMissingError(Exception):
    """The plotting libraries are not installed; the text says how to install them."""


def page(document: dict[str, Any]) -> str:
    """Return the whole report. Raises `PlotsMissingError`."""
    names = [result["policy"] for result in document["results"]]
    parts = [f"<h1>What if: {escape(' against '.join(names))}</h1>"]
    traffic = document["traffic"]
    parts.append(
        f"<p>{traffic['requests']:,} requests, {escape(str(traffic['source']))},"
        f" in virtual time. Simulated: nothing was sent.</p>"
    )
    parts.append(f'<div class="big">{"".join(map(_card, document["results"]))}</div>')
    for title, drawing in _plots(document):
        parts.append(f'<h2>{escape(title)}</h2><div class="scroll">{drawing}</div>')
    for title, columns, rows in tables(document):
        parts.append(f'<h2>{escape(title)}</h2><div class="scroll">{_table(columns, rows)}</div>')
    lines = "".join(f"<li>{escape(line)}</li>" for line in notes(document))
    parts.append(f"<h2>What it rests on</h2><ul>{lines}</ul>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>What if: {escape(names[0])}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _card(entry: dict[str, Any]) -> str:
    dollars, spill = entry["dollars"], entry["spill"]
    asked = sum(each["requests"] for each in entry["classes"])
    kept = sum((each["attainment"] or 0.0) * each["requests"] for each in entry["classes"])
    return (
        f'<div class="card">{escape(entry["policy"])}<b>${dollars["total_usd"]:,.2f}</b>'
        f"${dollars['fixed_usd']:,.2f} fixed + ${dollars['api_usd']:,.2f} API<br>"
        f"{share(kept / asked if asked else None)} of promises kept,"
        f" {share(spill['share_by_count'])} spilled</div>"
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    classes = [' class="n"' if column.startswith(">") else "" for column in columns]
    head = "".join(
        f"<th{kind}>{escape(name.lstrip('>='))}</th>"
        for name, kind in zip(columns, classes, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, classes, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _plots(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (title, SVG) pairs."""
    try:
        import altair as alt  # noqa: PLC0415  (an extra: a gateway alone has none)
        import vl_convert as vlc  # noqa: PLC0415  (as above)
    except ImportError as error:
        raise PlotsMissingError("its plots need `pip install 'breakeven[dashboard]'`") from error
    found = [
        ("Dollars", _dollars(alt, document["results"])),
        ("Promises kept, by class", _attainment_chart(alt, document["results"])),
    ]
    load, unit = _load(document)
    if load:
        found += [
            (title, _over_time(alt, load, unit, axis, form))
            for title, axis, form in (
                ("KV cache in use, highest of each stretch", ("kv_ratio", "KV in use"), ".0%"),
                ("Waiting in the engines' queues", ("waiting", "requests"), "d"),
                ("Running in the engines", ("running", "sequences"), "d"),
            )
        ]
    return [
        (title, str(vlc.vegalite_to_svg({**chart.to_dict(), "background": "transparent"})))
        for title, chart in found
    ]


def _dollars(alt: Any, results: Sequence[dict[str, Any]]) -> Any:
    data = [
        {"policy": result["policy"], "what": what, "usd": result["dollars"][name]}
        for result in results
        for what, name in (("fixed", "fixed_usd"), ("API", "api_usd"))
    ]
    colours = alt.Scale(domain=["fixed", "API"], range=[OWN, API])
    bars = alt.Chart({"values": data}, width=WIDTH - 320).mark_bar()
    return bars.encode(
        x=alt.X("usd:Q", title="USD", axis=alt.Axis(tickCount=8)),
        y=alt.Y("policy:N", title=None, sort=None, axis=alt.Axis(labelLimit=300, minExtent=130)),
        color=alt.Color("what:N", title=None, scale=colours),
        order=alt.Order("what:N", sort="descending"),
    )


def _attainment_chart(alt: Any, results: Sequence[dict[str, Any]]) -> Any:
    data = [
        {"class": f"{result['policy']}: {each['class']}", "what": what, "share": each[name]}
        for result in results
        for each in result["classes"]
        for what, name in ATTAINED
        if each[name] is not None
    ]
    order = [what for what, _ in ATTAINED]
    colours = alt.Scale(domain=order, range=[OWN, API, MUTED])
    name = alt.Header(labelAngle=0, labelAlign="left", labelLimit=300, labelPadding=30)
    bars = alt.Chart({"values": data}, width=WIDTH - 320).mark_bar()
    return bars.encode(
        x=alt.X("share:Q", title=None, axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("what:N", title=None, sort=order),
        row=alt.Row("class:N", title=None, sort=None, header=name),
        color=alt.Color("what:N", title=None, scale=colours, legend=None),
    )


def _load(document: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return samples by line with times in a unit, and the name of the unit."""
    is_long = document["traffic"]["seconds"] > 3 * 3600
    seconds, unit = (3600.0, "hours") if is_long else (60.0, "minutes")
    load = [
        {**item, "at": item["at_s"] / seconds, "line": f"{result['policy']}, {item['pool']}"}
        for result in document["results"]
        for item in result["load"]
    ]
    return load, unit


def _axis(alt: Any, form: str) -> Any:
    """Return an axis; counts have integer ticks, because 0.5 would be printed as 1."""
    return alt.Axis(format=form, tickMinStep=1) if form == "d" else alt.Axis(format=form)


def _over_time(
    alt: Any, load: list[dict[str, Any]], unit: str, axis: tuple[str, str], form: str
) -> Any:
    field, title = axis
    legend = alt.Legend(orient="top", labelLimit=500, columnPadding=40, symbolSize=300)
    colours = alt.Scale(range=[OWN, OTHER, API, MUTED])
    lines = alt.Chart({"values": load}, width=WIDTH, height=HEIGHT).mark_line(strokeWidth=1.6)
    return lines.encode(
        x=alt.X("at:Q", title=unit),
        y=alt.Y(f"{field}:Q", title=title, axis=_axis(alt, form)),
        color=alt.Color("line:N", title=None, sort=None, scale=colours, legend=legend),
    )
