"""Every card links to a term, and every term is said once and used."""

import ast
from pathlib import Path

from dashboard import look
from dashboard.terms import TERMS

PACKAGE = Path(look.__file__).parent


def used() -> dict[str, set[str]]:
    """The terms that calls of `look.card` name, by file; an empty name where one has none."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "card":
                named = [one.value for one in node.keywords if one.arg == "about"]
                names = {one.value for one in named if isinstance(one, ast.Constant)} or {""}
                found.setdefault(path.name, set()).update(names)
    return found


def test_every_card_of_the_books_names_a_term_that_there_is() -> None:
    found = used()
    assert len(found) > 5
    for name, terms in found.items():
        if name != "page_claims.py":  # a claim's own formula stands in its card
            assert terms <= set(TERMS), name
    assert len({term.title for term in TERMS.values()}) == len(TERMS)
