"""Check a claim: what articles say of self-hosting, and what follows from their own inputs.

Every figure is recomputed while the page is drawn, by the functions that price this ledger; the
table of claims lies in the package. A reader can put other inputs in. `breakeven claims` is the
same in a terminal and needs no ledger.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import look
from dashboard.data.reads import DashboardView
from ledger.economics.claims import (
    PublishedClaim,
    claims,
    compute,
    compute_with,
    inputs_of,
    within_reach,
)
from ledger.economics.cost import TokenBasis

EVERY, WRONG, RIGHT = "all", "do not follow", "follow"
NO_TOKENS = "no tokens in it"


def show(view: DashboardView) -> None:  # noqa: ARG001 - pages have one signature; this one reads no books
    every = claims()
    stated = [one for one in every if one.stated]
    wrong = [one for one in stated if not one.holds]
    look.answer(
        "Published figures, recomputed from their own inputs",
        f"{len(wrong)} of {len(stated)} stated figures do not follow from their own inputs.",
        f"{len(every) - len(stated)} more are derived from what is stated. Computed on each view.",
        look.UNSURE,
    )
    only = st.segmented_control(
        "Claims that", [EVERY, WRONG, RIGHT], default=EVERY, required=True, key="claims-only"
    )
    shown = [one for one in every if only == EVERY or one.holds == (only == RIGHT)]
    event = look.table(
        rows(shown),
        about="claim",
        column_config={"verdict": st.column_config.TextColumn(width="large")},
        height=430,
        on_select="rerun",
        selection_mode="single-row",
        key="claims",
    )
    st.caption("Select a row for its formula, and to put other figures in.")
    chosen = event["selection"]["rows"]
    if chosen and chosen[0] < len(shown):
        _detail(shown[chosen[0]])


def rows(found: Sequence[PublishedClaim]) -> list[dict[str, Any]]:
    return [
        {
            "claim": one.claim,
            "stated": stated(one.claimed),
            "follows from its inputs": figures(one, compute(one)),
            "unit, token basis": f"{one.unit}, {one.basis}" if one.basis else one.unit,
            "verdict": one.verdict,
        }
        for one in found
    ]


def stated(text: str) -> str:
    """As the article has it; plain numbers get their thousands, `5e9` stays."""
    return f"{int(text):,}" if text.isascii() and text.isdecimal() else text


def figures(one: PublishedClaim, found: Sequence[Fraction]) -> str:
    """As many places as the table says; both ends of a range."""
    told = one.recomputed.split("..")
    return " to ".join(
        f"{float(value):,.{len(text.partition('.')[2])}f}"
        for text, value in zip(told, found, strict=True)
    )


def _detail(one: PublishedClaim) -> None:
    with st.container(border=True):
        st.markdown(f"**{one.claim}**")
        st.code(f"{one.formula}\n{one.inputs.replace(';', '   ')}", language=None)
        inputs = inputs_of(one)
        columns = st.columns(min(4, len(inputs)))
        for place, (name, value) in enumerate(inputs.items()):
            given = columns[place % len(columns)].text_input(
                name, f"{value:f}", key=f"{one.id}-{name}"
            )
            number = _number(given)
            if number is None:
                st.warning(f"{name}: `{given}` is no number.")
                return
            inputs[name] = number
        try:
            found = compute_with(one.formula, inputs)
        except (ValueError, ArithmeticError) as error:
            st.warning(f"These inputs give nothing: {error}.")
            return
        look.card(
            f"{one.unit}, token basis: {one.basis or NO_TOKENS}",
            look.big(f"{float(found):,.4f}".rstrip("0").rstrip("."), size="mid"),
            look.small(f"The article says **{one.claimed}**: {one.verdict}.", *_reach(one)),
        )


def _reach(one: PublishedClaim) -> list[str]:
    said = []
    for basis in TokenBasis:
        reach = within_reach(one, basis)
        if reach is not None:
            word = "within reach" if reach else "cannot break even"
            said.append(f"At the article's own speed, counted as {basis}: {word}.")
    return said


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except ArithmeticError:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 40 else None
