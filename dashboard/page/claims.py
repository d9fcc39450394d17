"""Check a claim: published figures on self-hosting, recomputed from their own inputs.

Every figure is recomputed on each run with the functions that price this ledger; the table of
claims is in the package. Readers can enter other inputs. `breakeven claims` is the same in a
terminal and needs no ledger.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import theme
from dashboard.data.reads import DashboardView
from dashboard.sections import own_claim
from ledger.economics.claims import (
    PublishedClaim,
    claims,
    compute,
    compute_with,
    inputs_of,
    is_within_reach,
)
from ledger.economics.cost import TokenBasis

EVERY, WRONG, RIGHT = "all", "do not follow", "follow"
ANY = "any"
NO_TOKENS = "no tokens in it"


def show(view: DashboardView) -> None:  # noqa: ARG001 - pages have one signature; this one reads no books
    every = claims()
    stated = [claim for claim in every if claim.is_stated]
    wrong = [claim for claim in stated if not claim.is_confirmed]
    theme.answer(
        "Published figures, recomputed from their own inputs",
        f"{len(wrong)} of {len(stated)} stated figures do not follow from their own inputs.",
        f"{len(every) - len(stated)} more are derived from what is stated. Computed on each view.",
        theme.UNSURE,
    )
    st.subheader("A figure of your own", anchor="own")
    own_claim.show()
    st.subheader("What articles say", anchor="articles")
    left, right = st.columns([1, 2])
    only = left.segmented_control(
        "Claims that", [EVERY, WRONG, RIGHT], default=EVERY, required=True, key="claims-only"
    )
    articles = list(dict.fromkeys(claim.article for claim in every))
    article = right.selectbox("Article", [ANY, *articles], key="claims-article")
    shown = [
        claim
        for claim in every
        if (only == EVERY or claim.is_confirmed == (only == RIGHT))
        and article in {ANY, claim.article}
    ]
    event = theme.table(
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
            "follows": _follows(claim),  # first: a phone shows few columns
            "claim": claim.claim,
            "stated": stated_text(claim.claimed),
            "follows from its inputs": figures(claim, compute(claim)),
            "unit, token basis": f"{claim.unit}, {claim.basis}" if claim.basis else claim.unit,
            "verdict": claim.verdict,
            "article": claim.article,
        }
        for claim in found
    ]


def _follows(claim: PublishedClaim) -> str:
    if not claim.is_stated:
        return "derived"
    return "yes" if claim.is_confirmed else "no"


def stated_text(text: str) -> str:
    """Return a figure as the article writes it; plain numbers get thousands separators."""
    return f"{int(text):,}" if text.isascii() and text.isdecimal() else text


def figures(published_claim: PublishedClaim, found: Sequence[Fraction]) -> str:
    """Return figures with the table's number of decimals; a range has both ends."""
    told = published_claim.recomputed.split("..")
    return " to ".join(
        f"{float(value):,.{len(text.partition('.')[2])}f}"
        for text, value in zip(told, found, strict=True)
    )


def _detail(published_claim: PublishedClaim) -> None:
    with st.container(border=True):
        st.markdown(f"**{published_claim.claim}** ({published_claim.article})")
        st.code(
            f"{published_claim.formula}\n{published_claim.inputs.replace(';', '   ')}",
            language=None,
        )
        inputs = inputs_of(published_claim)
        columns = st.columns(min(4, len(inputs)))
        for place, (name, value) in enumerate(inputs.items()):
            given = columns[place % len(columns)].text_input(
                name, f"{value:f}", key=f"{published_claim.id}-{name}"
            )
            number = _number(given)
            if number is None:
                st.warning(f"{name}: `{given}` is not a number.")
                return
            inputs[name] = number
        try:
            found = compute_with(published_claim.formula, inputs)
        except (ValueError, ArithmeticError) as error:
            st.warning(f"These inputs give nothing: {error}.")
            return
        theme.card(
            f"{published_claim.unit}, token basis: {published_claim.basis or NO_TOKENS}",
            theme.big(f"{float(found):,.4f}".rstrip("0").rstrip("."), size="mid"),
            theme.small(
                f"The article says **{published_claim.claimed}**: {published_claim.verdict}.",
                *_reach(published_claim),
            ),
        )


def _reach(published_claim: PublishedClaim) -> list[str]:
    said = []
    for basis in TokenBasis:
        reach = is_within_reach(published_claim, basis)
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
