"""Prices page: compare a source with the price book, and approve its prices.

A comparison runs in the gateway and stores nothing. An approval covers exactly what was shown: the
gateway refuses it if the book or the source changed.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import confirmation, display, formatting, theme
from dashboard.admin_client import AdminClient
from dashboard.charts import pricing
from dashboard.data import entries, reads
from dashboard.data.reads import DashboardView
from dashboard.figures import shown_amount
from ledger.prices.rates import Price
from ledger.prices.unread_terms import doubtful_terms

PRICES = "prices"  # the change's name
SEEN = "prices-seen"
FILE = "a file: CSV, YAML or LiteLLM's JSON"
SOURCES = {
    "litellm": "the market's list that came with this version",
    "genai-prices": "genai-prices",
}
SHOWN = 200  # names of a table


def show(view: DashboardView) -> None:
    confirmation.show_outcome(PRICES)
    desk = confirmation.desk_for(view)
    if desk is None:
        _commands(named=view.viewer.name is not None)
    else:
        st.subheader("What a source states beside the price book", anchor=False)
        _show_comparison(desk)
    st.subheader("Prices in force", anchor=False)
    _in_force(view)


def _commands(*, named: bool) -> None:
    """Draw a note for viewers who cannot change prices: who can, and the command line."""
    who = "" if named else " Nobody signs in here so far: `dashboard.access_file` names people."
    st.info(
        "New prices are looked at and approved by finance people and admins who have signed in."
        f"{who} Where the gateway runs, the same is done by "
        "`breakeven prices diff --from litellm`, then `breakeven prices import`.",
        icon=":material/sell:",
    )


def _in_force(view: DashboardView) -> None:
    """Draw the prices of names that this period used or compared."""
    survey, book = reads.spending(view), reads.price_book(view)
    asked = {cell.target for cell in survey.cells if cell.backend == "api"}
    names = asked | {name for verdict in survey.standing.verdicts for name in verdict.comparators}
    if not names:
        st.info(
            "No API was asked and nothing compared in this period. Name targets and comparators "
            "(`models.NAME.targets`, `models.NAME.compare_with`), or choose a longer period.",
            icon=":material/sell:",
        )
        return
    prices = {name: book.find(name, view.now_us) for name in sorted(names)}
    charged = {
        name: book.version(version)
        for name, version in entries.charged_by(view, tuple(sorted(asked))).items()
    }
    by_another = {
        name: book.find(price.name, view.now_us) or price
        for name, price in charged.items()
        if price is not None and price.name != getattr(prices[name], "name", name)
    }
    prices |= by_another
    found = [
        price_row(name, price)
        | {"not in it": "" if price is None else _unread(book.unread_terms(price, view.now_us))}
        for name, price in prices.items()
    ]
    form = st.column_config.NumberColumn(format=price_format(found))
    theme.table(found, about="price", column_config=dict.fromkeys(KINDS, form))
    if any(row["not in it"] for row in found):
        st.caption(
            "`not in it`: charges that a price's source states and the book's terms do not say. "
            "What may be charged one is refused where a hard budget applies, and flagged "
            "`partly_priced` elsewhere, until a price file states it or says `complete: true`."
        )
    unknown = [formatting.quote(row["name"]) for row in found if row["version"] is None]
    if unknown:
        st.warning(
            f"No price in the book for {', '.join(unknown)}: answers from there are flagged "
            "unpriced. Name a file with a price for each (`prices`), or import one.",
            icon=":material/money_off:",
        )
    others = ", ".join(
        f"{formatting.code(name)} as {formatting.code(price.name)}"
        for name, price in by_another.items()
    )
    as_others = f" Priced as others are (`prices_as`): {others}."
    st.caption(
        "For 1M tokens each, of what was asked for or compared in this period."
        + (as_others if by_another else "")
    )


KINDS = ("input", "cached", "output")


def price_row(name: str, price: Price | None) -> dict[str, Any]:
    """Return a row with the price of 1M tokens by kind and its source; empty if unpriced.

    `since` is empty for the first known price.
    """
    if price is None:
        return {"name": name, **dict.fromkeys(KINDS), "since": None, "version": None, "source": ""}
    rates = {kind: shown_amount(getattr(price.terms.rates, kind) * 10**6) for kind in KINDS}
    from_us = price.effective_from_us
    since = formatting.instant(from_us).date() if from_us > 0 else None
    source = price.source or price.book
    return {"name": name, **rates, "since": since, "version": price.version, "source": source}


def _unread(names: Sequence[str]) -> str:
    """Return the charges that may apply and that no term states."""
    return ", ".join(doubtful_terms(names))


def price_format(found: Sequence[Mapping[str, Any]]) -> str:
    """Return a format with the decimals of the finest price: $0.075 needs three."""
    texts = [f"{row[kind]:.6f}".rstrip("0") for row in found for kind in KINDS if row[kind]]
    places = max([2, *(len(text.partition(".")[2]) for text in texts)])
    code = display.now().code
    return f"{'$' if code == display.USD else f'{code} '}%.{places}f"


def _show_comparison(desk: AdminClient) -> None:
    given = _source_form()
    if st.button("Look what would change", key="prices-look", disabled=given is None,
                 icon=":material/difference:") and given is not None:  # fmt: skip
        confirmation.forget_change(PRICES)
        st.session_state.pop(SEEN, None)
        with st.spinner("Comparing with the price book ..."):
            found = confirmation.send_change(PRICES, desk, "/prices/diff", **given)
        st.session_state[SEEN] = given, found
    seen = st.session_state.get(SEEN)
    if seen is None:
        st.caption("Nothing is stored by looking. Prices in force stay until somebody says yes.")
        return
    _show_plan(desk, *seen)


def _source_form() -> dict[str, Any] | None:
    """Return the request to the gateway; `None` while a file is missing."""
    left, right = st.columns(2)
    source = left.selectbox(
        "Prices stated by", [*SOURCES, FILE], format_func=lambda item: SOURCES.get(item, item),
        key="prices-source",
    )  # fmt: skip
    only = right.text_input(
        "Only names like these, with commas between", placeholder="openai/*, anthropic/claude-*",
        key="prices-only",
    )  # fmt: skip
    patterns = [word.strip() for word in only.split(",") if word.strip()] or None
    if source != FILE:
        return {"source": source, "only": patterns}
    file = st.file_uploader("The file", type=["csv", "yaml", "yml", "json"], key="prices-file")
    if file is None:
        return None
    content = base64.b64encode(file.getvalue()).decode()
    return {"source": file.name, "content": content, "only": patterns}


def _show_plan(desk: AdminClient, given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    entries = found["entries"]
    if not found["new_versions"]:
        st.success(
            f"The book has {formatting.plural(found['unchanged'], 'price')} of "
            f"`{found['book']}` as "
            "stated: nothing to approve.",
            icon=":material/done_all:",
        )
        return
    _summary(found)
    moved = pricing.moved_prices(entries)
    if moved:
        theme.chart(pricing.changes_chart(moved), about="price")
        st.caption("By how much the most changed prices move, in percent; amber: dearer.")
    for item in found["implausible"]:
        doubt = f"{formatting.quote(item['name'])}: {formatting.quote(item['detail'])}"
        st.warning(doubt, icon=":material/report:")
    theme.table(rows(entries)[:SHOWN], about="price")
    if len(rows(entries)) > SHOWN:
        st.caption(f"The first {SHOWN} of {len(rows(entries))} prices; narrow it by names above.")
    _approve(desk, given, found)


def _summary(found: Mapping[str, Any]) -> None:
    kinds: dict[str, int] = {}
    for entry in found["entries"]:
        kinds[entry["status"]] = kinds.get(entry["status"], 0) + 1
    theme.card(
        f"Stated by {found['book']}, beside the price book",
        theme.big(formatting.plural(found["new_versions"], "new version"), size="mid"),
        theme.rows(
            *((name, formatting.count(number), None) for name, number in sorted(kinds.items()))
        ),
        theme.small(
            f"{found['unchanged']:,} as they are; {found['refused']:,} rows of the source cannot "
            "be used."
        ),
        about="price",
    )


def rows(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each changed price; a name without one has one row."""
    made = []
    for entry in entries:
        named = {"name": entry["name"], "what": entry["status"]}
        source = (entry["after"] or {}).get("source") or ""
        for price in entry["prices"] or [{}]:
            above = price.get("above_tokens")
            tier = (
                "" if not price else price["tier"] + (f", above {above:,} tokens" if above else "")
            )
            made.append(
                {
                    **named,
                    "price of": f"{price.get('kind', '')} {tier}".strip(),
                    "old": price.get("old") or "",
                    "new": price.get("new") or "",
                    "unit": str(price.get("unit", "")).replace("_", " "),
                    "change, %": price.get("percent"),
                    "source": source,
                    "from": entry["from"][:10],
                }
            )
    return made


def _approve(desk: AdminClient, given: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    if st.button("Approve these prices", key="prices-approve", icon=":material/verified:"):
        confirmation.request_confirmation(PRICES)
    if not confirmation.pending_change(PRICES):
        return
    count = formatting.plural(found["new_versions"], "version")
    st.warning(
        f"{count} of {found['book']} will be stored under your name. Requests that begin then are "
        "priced by them, within 2 seconds; what was booked stays as it was.",
        icon=":material/warning:",
    )
    if confirmation.is_confirmed(PRICES, "Yes, approve them"):
        done = confirmation.send_change(
            PRICES, desk, "/prices/import", approves=found["approves"], **given
        )
        st.session_state.pop(SEEN, None)
        stored = formatting.plural(done["stored"], "version")
        confirmation.report_done(
            PRICES, f"Stored: {stored} of {done['book']}, approved by {done['by']}."
        )
