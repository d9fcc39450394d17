"""Service tiers, which a request asks for or an answer names, and which have own prices."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from backends.chunks import printable_text
from gateway.http.body import Members, decode_member
from gateway.kinds.inference_request import InferenceRequest
from ledger.prices.book import tier_of
from ledger.prices.rates import STANDARD
from router.request_kinds import DECODED_KINDS
from router.types import RoutingRequest

# Values of an answer in the standard service, for speed and region.
_USUAL: Final = frozenset(("", "standard", "default", "global", "not_available"))
TIER_MEMBER: Final = "service_tier"
TIER_LIMIT: Final = 32  # characters kept of a tier's name


# The standard tier's name in chat, by API, as a project may have another default.
_STANDARD_WORDS: Final = {
    "azure": "default",
    "groq": "on_demand",
    "openai": "default",
}
MESSAGES_WORD: Final = "default"  # in chat, for a target that gets it as Messages


def standard_word(api: str | None, *, messages: bool) -> str | None:
    """Return an API's name of the standard tier; None if it is unknown.

    Without a name no tier is sent, and the API uses its own default.
    """
    return MESSAGES_WORD if messages else _STANDARD_WORDS.get(api or "")


def own_tier(request: RoutingRequest, tier: str) -> str:
    """Return the target's tier to send, "" for the client's own or none.

    Tiers apply to generated text; no provider sells other kinds by tier.
    """
    return tier if request.kind in DECODED_KINDS and not request.service_tier else ""


def asked_tier(members: Members) -> str:
    """Return the requested tier as price lists name it, "" if the request leaves it open.

    A value that is no string is returned as its JSON, and an invisible character becomes a mark: no
    price lists these, so the tier counts as unlisted. Raises `RequestError` if unreadable.
    """
    value = decode_member(members, TIER_MEMBER, Any)
    if value is None:
        return ""
    word = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return tier_of(printable_text(word))[:TIER_LIMIT]


def named_tier(asked: InferenceRequest) -> str:
    """Return the tier that a client names in any dialect, as price lists name it; "" for none."""
    if TIER_MEMBER in asked.members:
        return asked_tier(asked.members)
    return STANDARD if asked.standard_tier else ""


def told_tier(told: object, usage: Mapping[str, Any], *, regional: bool) -> str | None:
    """Return the tier that an answer names, as price lists name it; None if it names none.

    Anthropic's usage also has a faster mode and a region, and either costs more: `us` is then a
    tier of its own. `regional`: the price is a region's already.
    """
    word = told or usage.get("service_tier")
    tier = tier_of(printable_text(word))[:TIER_LIMIT] if isinstance(word, str) else None
    if "speed" not in usage and "inference_geo" not in usage:
        return tier
    named = [usage.get("speed"), None if regional else usage.get("inference_geo")]
    dearer = [tier_of(printable_text(name)) for name in named if isinstance(name, str)
              and name.lower() not in _USUAL]  # fmt: skip
    if not dearer:
        return tier
    return "-".join([*([] if tier in (None, STANDARD) else [tier]), *dearer])[:TIER_LIMIT]
