"""Every card, chart and table links to a term, and every term is said once and used."""

import ast
from pathlib import Path

from dashboard import theme
from dashboard.terms import TERMS

PACKAGE = Path(theme.__file__).parent
SHOWS = ("card", "chart", "table")  # of `theme`
PLAIN = ("dataframe", "table", "altair_chart", "line_chart", "bar_chart")  # of Streamlit


def used() -> dict[str, set[str]]:
    """The terms that what shows figures names, by file; an empty name where one has none."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SHOWS:
                named = [keyword.value for keyword in node.keywords if keyword.arg == "about"]
                names = {
                    element.value for element in named if isinstance(element, ast.Constant)
                } or {""}
                found.setdefault(str(path.relative_to(PACKAGE)), set()).update(names)
    return found


def test_every_figure_of_the_books_names_a_term_that_there_is() -> None:
    found = used()
    assert len(found) > 5
    for name, terms in found.items():
        if name != "page/claims.py":  # a claim's own formula stands in its card
            assert terms <= set(TERMS), name
    assert len({term.title for term in TERMS.values()}) == len(TERMS)


def plain(text: str) -> list[str]:
    """Streamlit's own ways to show figures, which lead nowhere."""
    return [
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr in PLAIN) == ("st", True)
    ]


def test_no_page_shows_figures_past_the_look() -> None:
    assert plain("import streamlit as st\nst.dataframe([])") == ["dataframe"], "the control"
    shown = {path for path in PACKAGE.rglob("*.py") if plain(path.read_text())}
    assert shown == {PACKAGE / "theme.py"}
