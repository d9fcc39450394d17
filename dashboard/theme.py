"""Appearance: one palette, light and dark, and the blocks that Streamlit lacks.

A color has one meaning on every page: green-blue is own, amber is an API, violet the substitute
comparator, blue the same weights elsewhere. Every text from the ledger is escaped.
"""

from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from dashboard.formatting import Money
from dashboard.terms import TERMS

OWN, DOWN, API = "#0F766E", "#C8553D", "#E0912F"
OPS = "#745820"  # cost of people who run own hardware
ADJUSTED = "#8A6FB0"  # adjustments of posted bills
SUBSTITUTE, SAME_WEIGHTS, INK, MUTED = "#7A5AF8", "#2E75D6", "#1B2421", "#5C6964"
CHOSEN = ("period", "days", "team", "zone", "money", "live")  # URL parameters common to all pages
FAR = 4.0  # times the larger of volume and break-even
BESIDE_EDGE = 60.0  # per cent of a gauge
GAIN, LOSS = "#067647", "#B42318"
UNSURE, API_DEEP = "#4A5652", "#9A5B13"

_VARIABLES = ("ink", "muted", "card", "track", "gain", "loss")
_STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding-top: 2.2rem; padding-bottom: 3rem;
  max-width: 1500px;}
[data-stale="true"] {opacity: 1 !important;}
[data-testid="stCaptionContainer"] {opacity: 1 !important; color: var(--be-muted) !important;}
[data-testid="stCaptionContainer"] p {color: inherit;}
[data-testid="stCaptionContainer"] code {font-size: .84em;}
[data-variant="segmented_control"][aria-checked="true"] p {color: var(--be-ink);}
[data-testid="stVerticalBlock"]:has(> [data-testid="stElementContainer"] .be-card) {
  background: var(--be-card);}
.be-card h4 {margin: 0 0 .35rem; padding: 0; font-size: .82rem;
  font-weight: 600; color: var(--be-muted);}
.be-about {color: var(--be-muted) !important; text-decoration: underline dotted;
  text-underline-offset: 3px;}
.be-rows-of {margin-left: .7rem; font-weight: 400; font-size: .78rem; white-space: nowrap;}
.be-leads {font-size: .78rem; margin: -.9rem 0 .2rem; text-align: right;}
.be-leads.be-below {margin-top: -.6rem;}
.be-big {font-size: 2.3rem; font-weight: 720; line-height: 1.15; letter-spacing: -.02em;}
.be-mid {font-size: 1.55rem; font-weight: 680; line-height: 1.25; letter-spacing: -.01em;}
.be-small {font-size: .86rem; color: var(--be-muted); line-height: 1.45;}
.be-small b {color: var(--be-ink); font-weight: 620;}
.be-gain {color: var(--be-gain);} .be-loss {color: var(--be-loss);}
.be-answer {border-radius: 14px; padding: 1.05rem 1.4rem; margin-bottom: .2rem; color: #fff;}
.be-answer .q {font-size: .88rem; opacity: .85; font-weight: 560;}
.be-answer .a {font-size: 1.7rem; font-weight: 720; line-height: 1.25; letter-spacing: -.015em;}
.be-answer .s {font-size: .95rem; opacity: .92; margin-top: .2rem;}
.be-label {border: 1px solid #B54708; background: #FFF4E5; color: #7A2E0E; font-weight: 620;
  padding: .5rem .9rem; border-radius: 9px; font-size: .92rem;}
.be-track {position: relative; height: 20px; background: var(--be-track); border-radius: 6px;
  margin: 1.75rem 0 1.75rem;}
.be-fill {position: absolute; left: 0; top: 0; bottom: 0; border-radius: 6px;}
.be-mark {position: absolute; top: -5px; bottom: -5px; width: 3px; margin-left: -1.5px;
  border-radius: 2px; background: var(--be-ink);}
.be-tag {position: absolute; font-size: .76rem; white-space: nowrap; color: var(--be-muted);}
.be-tag.up {top: -23px;} .be-tag.down {top: 25px;}
.be-bar {display: flex; height: 14px; border-radius: 5px; overflow: hidden; margin: .55rem 0;
  background: var(--be-track);}
.be-bar span {display: block; height: 100%;}
.be-key {display: inline-block; width: .62rem; height: .62rem; border-radius: 3px;
  margin-right: .35rem;}
.st-key-policies-text textarea {font-family: "Source Code Pro", monospace; font-size: .84rem;
  line-height: 1.4;}
.be-rows {width: 100%; font-size: .88rem; border-collapse: collapse;}
.be-card h4, .be-small, .be-big, .be-mid, .be-answer, .be-label, .be-rows td,
[data-testid="stCaptionContainer"] {overflow-wrap: anywhere;}
.be-rows td {padding: .14rem 0; border: none; min-width: 5.6rem;}
.be-rows td:last-child {text-align: right;
  font-variant-numeric: tabular-nums;}
</style>"""


@dataclass(frozen=True, slots=True)
class InkColors:
    """Colors of text and lines of one theme, light or dark."""

    ink: str
    muted: str
    card: str
    track: str
    grid: str
    line: str
    gain: str
    loss: str
    idle: str  # pale next to used time, and not glaring on a dark background
    dots: float  # opacity of dots: half opacity is hardly visible on a dark background


LIGHT = InkColors(
    INK, MUTED, "#FFFFFF", "#EDF1EF", "#E8ECEA", "#CBD3D0", GAIN, LOSS, "#A7D3CD", 0.5
)
DARK = InkColors(
    "#E6ECEA",
    "#A3B1AC",
    "#1A2220",
    "#2A3431",
    "#29332F",
    "#46534F",
    "#4ED6A0",
    "#FF9385",
    "#759D98",
    0.85,
)


def inks() -> InkColors:
    """Return the colors of the theme that the viewer's browser shows."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def style() -> None:
    now = inks()
    values = "".join(f"--be-{name}:{getattr(now, name)};" for name in _VARIABLES)
    st.html(f"<style>:root{{{values}}}</style>{_STYLE}")


def label(*texts: str) -> None:
    """Draw warning lines: traffic is simulated, or operators override policies."""
    for text in texts:
        st.html(f'<div class="be-label">{escape(text)}</div>')


def answer(question: str, text: str, more: str, colour: str) -> None:
    st.html(
        f'<div class="be-answer" style="background:{colour}">'
        f'<div class="q">{escape(question)}</div>'
        f'<div class="a">{escape(text)}</div><div class="s">{escape(more)}</div></div>'
    )


def card(title: str, *parts: str, about: str = "") -> None:
    """Draw a card; `parts` are HTML of the functions below, `about` the term of its figures."""
    with st.container(border=True, height="stretch"):
        head = f"<h4>{_title_with_link(escape(title), about)}</h4>"
        st.html(f'<div class="be-card">{head}{"".join(parts)}</div>')


class TrustedChart:
    """Chart for Streamlit that is not validated against Vega-Lite's schema a second time."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = self._drawn.to_dict(validate=False)
        return found


def chart(drawn: Any, *, about: str, **how: Any) -> None:
    """Draw a chart with links to its term and to the rows behind it.

    `how` is passed to Streamlit: a key, and a callback for selections.
    """
    trusted: Any = TrustedChart(drawn)
    st.altair_chart(trusted, width="stretch", **how)
    meaning = _leads("terms", about, TERMS[about].title, "What this means")
    st.html(f'<div class="be-leads">{meaning}{_to_rows(about)}</div>')


def table(rows: Any, *, about: str, **how: Any) -> Any:
    """Draw a table with empty cells for unknown values, and a link to its term.

    `how` is passed to Streamlit, and its selection is returned.
    """
    found = st.dataframe(rows, hide_index=True, width="stretch", placeholder="", **how)
    meaning = _leads("terms", about, TERMS[about].title, "What these columns mean")
    st.html(f'<div class="be-leads be-below">{meaning}</div>')
    return found


def _title_with_link(title: str, about: str) -> str:
    """Return a title with links to its term and to the rows behind the figures."""
    if not about:
        return title
    return _leads("terms", about, f"What this means: {TERMS[about].title}", title) + _to_rows(about)


def _to_rows(about: str) -> str:
    page, _, anchor = TERMS[about].rows.partition("#")
    if not page:
        return ""
    link = _leads(page, anchor, "The requests behind it", "requests")
    return f'<span class="be-rows-of">{link}</span>'


def _leads(page: str, anchor: str, told: str, text: str) -> str:
    """Return a link to a page that keeps the choices of this one."""
    address = escape(f"{to_page(page)}{'#' if anchor else ''}{anchor}")
    return f'<a class="be-about" href="{address}" target="_self" title="{escape(told)}">{text}</a>'


def to_page(page: str, **more: str | None) -> str:
    """Return a page's URL with the current choices, changed by `more`; `None` omits one."""
    chosen = {name: value for name, value in st.query_params.items() if name in CHOSEN}
    asked = {name: value for name, value in {**chosen, **more}.items() if value is not None}
    return f"{page}?{urlencode(asked)}" if asked else page


def big(text: str, *, tone: str = "", size: str = "big") -> str:
    return f'<div class="be-{size} {tone}"{_exact(text)}>{escape(text)}</div>'


def small(*lines: str) -> str:
    """Return lines of plain text; words between `**` are bold."""
    return f'<div class="be-small">{"<br>".join(_bold(line) for line in lines)}</div>'


def rows(*pairs: tuple[str, str, str | None]) -> str:
    """Return a table of (name, figure, color of its key)."""
    cells = "".join(
        f"<tr><td>{_key(colour)}{escape(name)}</td><td{_exact(figure)}>{escape(figure)}</td></tr>"
        for name, figure, colour in pairs
    )
    return f'<table class="be-rows">{cells}</table>'


def _exact(text: str) -> str:
    """Return a tooltip with the exact amount in the ledger, empty for other text."""
    return f' title="{escape(text.exact)} in the books"' if isinstance(text, Money) else ""


def shares(*parts: tuple[float, str]) -> str:
    """Return one bar divided in proportion."""
    total = sum(part for part, _ in parts) or 1.0
    spans = "".join(
        f'<span style="width:{100 * part / total:.2f}%;background:{colour}"></span>'
        for part, colour in parts
    )
    return f'<div class="be-bar">{spans}</div>'


def gauge(
    volume: float,
    needed: float | None,
    capacity: float | None,
    texts: tuple[str, str, str],
    colour: str,
) -> str:
    """Return volume as a bar, break-even as a mark, capacity as the end of the track.

    A capacity far beyond both would make them invisible: it is then only named at the edge.
    """
    near = max(volume, needed or 0.0, 1e-9)
    far = capacity is not None and capacity > FAR * near
    end = 1.5 * near if far else 1.06 * max(near, capacity or 0.0)
    here, at, limit = (100 * (x or 0.0) / end for x in (volume, needed, capacity))
    parts = [f'<div class="be-fill" style="width:{here:.2f}%;background:{colour}"></div>']
    # With a name at the edge, the tag stays far enough left for a phone.
    parts.append(_tag("down", min(here, BESIDE_EDGE) if far else here, texts[0]))
    if far:
        parts.append(_tag("down", 100.0, f"{texts[2]} >"))
    elif capacity is not None:
        parts.append(
            f'<div class="be-fill" style="left:{limit:.2f}%;width:{100 - limit:.2f}%;'
            f"background:repeating-linear-gradient(45deg,{DOWN}66,{DOWN}66 5px,"
            "var(--be-card) 5px,var(--be-card) 10px);"
            f'border-radius:0 6px 6px 0"></div>'
        )
        parts.append(_tag("down" if abs(limit - here) > 35 else "up", limit, texts[2]))
    if needed is not None:
        parts.append(f'<div class="be-mark" style="left:{at:.2f}%"></div>')
        crowded = (
            capacity is not None and not far and abs(limit - here) <= 35 and abs(limit - at) < 40
        )
        parts.append(_tag("up", at if not crowded else min(at, 30.0), texts[1]))
    return f'<div class="be-track">{"".join(parts)}</div>'


def _tag(side: str, at: float, text: str) -> str:
    shift = "0" if at < 14 else "-100%" if at > 86 else "-50%"
    return (
        f'<div class="be-tag {side}" style="left:{at:.2f}%;transform:translateX({shift})">'
        f"{_bold(text)}</div>"
    )


def _key(colour: str | None) -> str:
    return "" if colour is None else f'<span class="be-key" style="background:{colour}"></span>'


def _bold(text: str) -> str:
    parts = escape(text).split("**")
    return "".join(f"<b>{part}</b>" if n % 2 else part for n, part in enumerate(parts))
