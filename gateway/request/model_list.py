"""Lists of logical models in OpenAI's and Anthropic's format, both at `/v1/models`.

Anthropic's clients send the header `anthropic-version`.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from gateway.auth import allowed
from gateway.config.settings import Settings, resolve_model
from gateway.errors import RequestError
from ledger.identity.keys import Identity


def usable_models(settings: Settings, identity: Identity) -> list[str]:
    """Return the configured names that this key's requests may use."""
    return [name for name in settings.models if is_usable(settings, identity, name)]


def is_usable(settings: Settings, identity: Identity, name: str) -> bool:
    """Return whether a key's requests may name the model; `openai/*` covers all its names."""
    found = resolve_model(settings, name)
    resolved = name if found is None else found[0]
    known = found is not None or name in settings.models
    if not known or not allowed(identity.models, name, resolved):
        return False
    model = None if found is None else found[1]
    if identity.residency != "internal_only":
        return True
    return model is not None and any(target.startswith("pool:") for target in model.reachable)


def card(name: str, created_s: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created_s, "owned_by": "breakeven"}


class ShownLimits(NamedTuple):
    """The most tokens of a model's prompt and answer, where they are known."""

    input_tokens: int | None = None
    output_tokens: int | None = None


UNKNOWN: Final = ShownLimits()


def anthropic_card(name: str, created_s: int, limits: ShownLimits = UNKNOWN) -> dict[str, Any]:
    """Return Anthropic's model object; its clients cut prompts by the limits."""
    created = datetime.fromtimestamp(created_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    named = {"type": "model", "id": name, "display_name": name, "created_at": created}
    bounds = {"max_input_tokens": limits.input_tokens, "max_tokens": limits.output_tokens}
    return {**named, "lifecycle": "active", **bounds}


class ModelPage(NamedTuple):
    """The requested part of the list; all of it by default."""

    limit: int | None = None
    after_id: str | None = None
    before_id: str | None = None


ALL: Final = ModelPage()


def _no_limits(_: str) -> ShownLimits:
    return UNKNOWN


def anthropic_cards(
    names: Sequence[str],
    created_s: int,
    page: ModelPage = ALL,
    limits_of: Callable[[str], ShownLimits] = _no_limits,
) -> dict[str, Any]:
    """Return a page of model objects; `has_more` refers to the direction of the page.

    Without `limit` the page holds all, because many clients ask once. Raises `RequestError` for an
    id that is not in the list.
    """
    start = 0 if page.after_id is None else _place(names, "after_id", page.after_id) + 1
    stop = len(names) if page.before_id is None else _place(names, "before_id", page.before_id)
    asked = names[start:stop]
    most = len(asked) if page.limit is None else page.limit
    shown = asked[:most] if page.before_id is None else asked[max(0, len(asked) - most) :]
    return {
        "data": [anthropic_card(name, created_s, limits_of(name)) for name in shown],
        "has_more": len(shown) < len(asked),
        "first_id": shown[0] if shown else None,
        "last_id": shown[-1] if shown else None,
    }


def _place(names: Sequence[str], member: str, name: str) -> int:
    if name not in names:
        raise RequestError("bad_request", f"`{member}` names no model of this list.", param=member)
    return names.index(name)
