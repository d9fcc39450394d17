"""Logical models as the two APIs list them: OpenAI's `/v1/models`, and Anthropic's at its place.

Both ask the same path; Anthropic's clients tell themselves by `anthropic-version`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any


def card(name: str, created_s: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created_s, "owned_by": "breakeven"}


def cards(names: Sequence[str], created_s: int) -> dict[str, Any]:
    return {"object": "list", "data": [card(name, created_s) for name in names]}


def anthropic_card(name: str, created_s: int) -> dict[str, Any]:
    created = datetime.fromtimestamp(created_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    named = {"type": "model", "id": name, "display_name": name, "created_at": created}
    return {**named, "lifecycle": "active"}


def anthropic_cards(names: Sequence[str], created_s: int) -> dict[str, Any]:
    """All on one page, whatever `limit` says: there are as many as somebody wrote down."""
    return {
        "data": [anthropic_card(name, created_s) for name in names],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }
