"""Logical models as the two APIs list them: OpenAI's `/v1/models`, and Anthropic's at its place.

Both ask the same path; Anthropic's clients tell themselves by `anthropic-version`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.auth import allowed
from gateway.config.settings import Settings, resolve_model
from ledger.identity.keys import Identity


def usable_models(settings: Settings, identity: Identity) -> list[str]:
    """The configured names that this key's requests may use."""
    return [name for name in settings.models if is_usable(settings, identity, name)]


def is_usable(settings: Settings, identity: Identity, name: str) -> bool:
    """Return whether a request of the key may name it; `openai/*` stands for its names."""
    found = resolve_model(settings, name)
    resolved = name if found is None else found[0]
    known = found is not None or name in settings.models
    if not known or not allowed(identity.models, name, resolved):
        return False
    model = None if found is None else found[1]
    if identity.residency != "internal_only":
        return True
    return model is not None and any(target.startswith("pool:") for target in model.targets)


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
