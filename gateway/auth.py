"""Who asks: a bearer token to an identity, or the one answer that gives nothing away.

A missing, malformed, unknown, expired or revoked key all get 401; only the message tells a
missing one apart. With the ledger away known keys go on and unknown ones get 503.
"""

from collections.abc import Iterable

from gateway.errors import RequestError
from ledger.identity import Identity, KeyRing, LedgerAway

INFERENCE = "inference"
BEARER = b"bearer "


def token_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The bearer token (or `x-api-key`); raises 401 when there is none."""
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == BEARER:
            return value[7:].strip().decode("latin-1")
        if name == b"x-api-key":
            return value.strip().decode("latin-1")
    raise RequestError(
        "no_key",
        "No API key was sent. Send `Authorization: Bearer <key>`; "
        "`breakeven keys create` makes one.",
    )


async def authenticate(keys: KeyRing, token: str, *, now_us: int, scope: str) -> Identity:
    """The key's identity, if it may do `scope`."""
    try:
        identity = await keys.lookup(token, now_us)
    except LedgerAway as error:
        raise RequestError(
            "unavailable", "This key cannot be checked at the moment.", retry_after_s=1.0
        ) from error
    if identity is None:
        raise RequestError("bad_key", "This API key is not valid.")
    if scope not in identity.scopes:
        raise RequestError("forbidden", f"This key does not have the scope `{scope}`.")
    return identity
