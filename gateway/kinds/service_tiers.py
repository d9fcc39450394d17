"""The service tier that a request asks for: a provider may serve it at other prices."""

from typing import Any, Final

import msgspec

from gateway.http.body import Members, decode_member
from ledger.prices.book import tier_of
from ledger.prices.rates import STANDARD

TIER_LIMIT: Final = 32  # characters of a tier's word that are kept


def asked_tier(members: Members) -> str:
    """Return the tier in the words of price lists, or "" where it is the standard one.

    A value that is no string is returned as its JSON: no price lists it. Raises `RequestError` for
    what cannot be read.
    """
    value = decode_member(members, "service_tier", Any)
    if value is None:
        return ""
    word = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    tier = tier_of("".join(filter(str.isprintable, word)))[:TIER_LIMIT]
    return "" if tier == STANDARD else tier
