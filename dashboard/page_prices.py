"""Which prices wait for a yes? What a source states beside the price book, approved by name.

Looking is asked of the gateway and stores nothing. What is approved is exactly what was shown: the
gateway refuses where the book or the source says something else by then.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import changing, charts_prices, look, words
from dashboard.asking import Desk
from dashboard.data import View

PRICES = "prices"  # the change's name
SEEN = "prices-seen"
FILE = "a file: CSV, YAML or LiteLLM's JSON"
SOURCES = {
    "litellm": "the market's list that came with this version",
    "genai-prices": "genai-prices",
}
SHOWN = 200  # names of a table


def show(view: View) -> None:
    changing.told(PRICES)
    desk = changing.desk_for(view)
    if desk is None:
        st.info(
            "Prices are looked at and approved by finance people and admins who have signed in, "
            "or where the gateway runs: `breakeven prices diff --from litellm`, then "
            "`breakeven prices import`.",
            icon=":material/sell:",
        )
        return
    given = _given()
    if st.button("Look what would change", key="prices-look", disabled=given is None,
                 icon=":material/difference:") and given is not None:  # fmt: skip
        changing.forget(PRICES)
        with st.spinner("Comparing with the price book ..."):
            found = changing.done(desk, "/prices/diff", **given)
        st.session_state[SEEN] = None if found is None else (given, found)
    seen = st.session_state.get(SEEN)
    if seen is None:
        st.caption("Nothing is stored by looking. Prices in force stay until somebody says yes.")
        return
    _seen(desk, *seen)


def _given() -> dict[str, Any] | None:
    """What the gateway is asked; None while a file is missing."""
    left, right = st.columns(2)
    source = left.selectbox(
        "Prices stated by", [*SOURCES, FILE], format_func=lambda one: SOURCES.get(one, one),
        key="prices-source",
    )  # fmt: skip
    only = right.text_input(
        "Only names like these, with commas between", placeholder="openai/*, anthropic/claude-*",
        key="prices-only",
    )  # fmt: skip
    patterns = [one.strip() for one in only.split(",") if one.strip()] or None
    if source != FILE:
        return {"source": source, "only": patterns}
    file = st.file_uploader("The file", type=["csv", "yaml", "yml", "json"], key="prices-file")
    if file is None:
        return None
    content = base64.b64encode(file.getvalue()).decode()
    return {"source": file.name, "content": content, "only": patterns}


def _seen(desk: Desk, given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    entries = found["entries"]
    if not found["new_versions"]:
        st.success(
            f"{words.plural(found['unchanged'], 'price')} of `{found['book']}` stand in the book "
            "as they are stated: nothing to approve.",
            icon=":material/done_all:",
        )
        return
    _summary(found)
    moved = charts_prices.moved(entries)
    if moved:
        look.chart(charts_prices.changes(moved), about="price")
        st.caption("By how much the most changed prices move, in percent; amber: dearer.")
    for one in found["implausible"]:
        st.warning(f"{one['name']}: {one['detail']}", icon=":material/report:")
    look.table(rows(entries)[:SHOWN], about="price")
    if len(rows(entries)) > SHOWN:
        st.caption(f"The first {SHOWN} of {len(rows(entries))} prices; narrow it by names above.")
    _approve(desk, given, found)


def _summary(found: Mapping[str, Any]) -> None:
    kinds: dict[str, int] = {}
    for one in found["entries"]:
        kinds[one["status"]] = kinds.get(one["status"], 0) + 1
    look.card(
        f"Stated by {found['book']}, beside the price book",
        look.big(words.plural(found["new_versions"], "new version"), size="mid"),
        look.rows(*((name, words.count(number), None) for name, number in sorted(kinds.items()))),
        look.small(
            f"{found['unchanged']:,} as they are; {found['refused']:,} rows of the source cannot "
            "be used."
        ),
        about="price",
    )


def rows(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each price that differs; a name without one has a row of its own."""
    made = []
    for entry in entries:
        named = {"name": entry["name"], "what": entry["status"]}
        source = (entry["after"] or {}).get("source") or ""
        for one in entry["prices"] or [{}]:
            above = one.get("above_tokens")
            tier = "" if not one else one["tier"] + (f", above {above:,} tokens" if above else "")
            made.append(
                {
                    **named,
                    "price of": f"{one.get('kind', '')} {tier}".strip(),
                    "old": one.get("old") or "",
                    "new": one.get("new") or "",
                    "unit": str(one.get("unit", "")).replace("_", " "),
                    "change, %": one.get("percent"),
                    "source": source,
                    "from": entry["from"][:10],
                }
            )
    return made


def _approve(desk: Desk, given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    if st.button("Approve these prices", key="prices-approve", icon=":material/verified:"):
        changing.ask(PRICES)
    if not changing.asked(PRICES):
        return
    count = words.plural(found["new_versions"], "version")
    st.warning(
        f"{count} of {found['book']} will be stored under your name. Requests that begin then are "
        "priced by them, within 2 seconds; what was booked stays as it was.",
        icon=":material/warning:",
    )
    if changing.confirmed(PRICES, "Yes, approve them"):
        done = changing.done(desk, "/prices/import", approves=found["approves"], **given)
        if done is not None:
            st.session_state.pop(SEEN, None)
            stored = words.plural(done["stored"], "version")
            changing.tell(
                PRICES, f"{stored} of {done['book']} are stored, approved by {done['by']}."
            )
