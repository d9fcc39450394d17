"""The service tier that a request asks for, or an answer names: it has prices of its own."""

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

# What an answer names where it is served as usual, by speed and by place.
_USUAL: Final = frozenset(("", "standard", "default", "global", "not_available"))
TIER_MEMBER: Final = "service_tier"
TIER_LIMIT: Final = 32  # characters of a tier's word that are kept


# The word for the standard tier in chat, by who serves it: a project may have another default.
_STANDARD_WORDS: Final = {
    "azure": "default",
    "groq": "on_demand",
    "openai": "default",
}
MESSAGES_WORD: Final = "default"  # of chat, for a target that gets it as Messages


def standard_word(api: str | None, *, messages: bool) -> str | None:
    """Return the word for the standard tier at an API; None where none is known.

    Without a word no tier is named there, and what the API then does is its own default.
    """
    return MESSAGES_WORD if messages else _STANDARD_WORDS.get(api or "")


def own_tier(request: RoutingRequest, tier: str) -> str:
    """Return the tier of a target that a request is sent with; "": its client's, or none.

    Tiers are of text that is decoded: other kinds are sent none, and no provider sells them so.
    """
    return tier if request.kind in DECODED_KINDS and not request.service_tier else ""


def asked_tier(members: Members) -> str:
    """Return the tier in the words of price lists; "": the request leaves it to its target.

    A value that is no string is returned as its JSON: no price lists it. Nor does one list a word
    with a mark for each character that nobody sees: its target may read it as another. Raises
    `RequestError` for what cannot be read.
    """
    value = decode_member(members, TIER_MEMBER, Any)
    if value is None:
        return ""
    word = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return tier_of(printable_text(word))[:TIER_LIMIT]


def named_tier(asked: InferenceRequest) -> str:
    """Return the tier that a client names in any dialect, in the words of price lists; "": none."""
    if TIER_MEMBER in asked.members:
        return asked_tier(asked.members)
    return STANDARD if asked.standard_tier else ""


def told_tier(told: object, usage: Mapping[str, Any], *, regional: bool) -> str | None:
    """Return the tier that an answer names in the words of price lists, None where it names none.

    Anthropic tells a faster mode and a place beside its tier, in its usage, and charges more for
    either: `us` is a tier of its own then. `regional`: the price is of a place already.
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
