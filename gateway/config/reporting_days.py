"""Budgets that name no time zone have the organisation's: `timezone` at the top of the file.

Works on the document before the schema does, so that one value is checked and compared everywhere.
"""

from collections.abc import Mapping
from typing import Any


def with_zones(document: Any) -> Any:
    """Return the same with a zone in each budget, as a new document where it differs."""
    if not isinstance(document, Mapping) or "timezone" not in document:
        return document
    budgets = document.get("budgets")
    if not isinstance(budgets, list | tuple):
        return document
    filled = [
        {"timezone": document["timezone"], **budget} if isinstance(budget, Mapping) else budget
        for budget in budgets
    ]
    return {**document, "budgets": filled}
