"""Default time zone of budgets: the top-level `timezone` of the organisation.

This works on the document before validation, so that one value is checked and compared everywhere.
"""

from collections.abc import Mapping
from typing import Any


def with_zones(document: Any) -> Any:
    """Return the document with a time zone in each budget, copied if it changed."""
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
