"""Form for any published figure: claim, formula, inputs, and the computed result."""

from decimal import Decimal
from fractions import Fraction

import streamlit as st

from dashboard import theme
from ledger.economics.claimed_figures import judge_claim
from ledger.economics.claims import FORMULAS
from ledger.economics.formula_text import evaluate, names_in, read_input

COLUMNS = 4
_FIRST = next(iter(FORMULAS))


def show() -> None:
    """Draw the form; its fields are the names in the formula."""
    left, right = st.columns([1, 2])
    claimed = left.text_input(
        "The figure that is claimed", key="own-claimed", placeholder="30 to 40",
        help="1.5, 30 to 40, over 100e9, at most 1; empty where none is stated.",
    )  # fmt: skip
    formula = right.text_input(
        "Formula", _FIRST, key="own-formula",
        help="Names, numbers, + - * / ^ ( ) and ceiling(...). One of the table's or your own.",
    )  # fmt: skip
    try:
        inputs = _fields(names_in(formula))
        if inputs is None:
            st.caption("Fill in every input to see what follows.")
            return
        found = evaluate(formula, inputs)
        verdict = judge_claim(claimed, found)
    except ValueError as error:
        st.warning(f"Nothing follows: {error}.")
        return
    theme.card(
        "What follows from these inputs",
        theme.big(figure(found), size="mid"),
        theme.small(f"{verdict[:1].upper()}{verdict[1:]}."),
        about="claim",
    )


def _fields(names: list[str]) -> dict[str, Decimal] | None:
    """Return the inputs, `None` if one is empty. Raises `ValueError` for an invalid number."""
    columns = st.columns(min(COLUMNS, max(1, len(names))))
    found = {}
    for place, name in enumerate(names):
        text = columns[place % len(columns)].text_input(name, key=f"own-{name}").strip()
        if text:
            found[name] = read_input(name, text)
    return found if len(found) == len(names) else None


def figure(value: Fraction) -> str:
    """Return a number with at most four decimals and all digits before the point."""
    return f"{float(value):,.4f}".rstrip("0").rstrip(".")
