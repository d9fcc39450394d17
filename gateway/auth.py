"""Authentication: a bearer token to an identity, or one answer that reveals nothing.

A missing, malformed, unknown, expired or revoked key all get 401; only the message tells apart a
missing one, and one whose form is another product's. With the ledger away known keys go on and
unknown ones get 503.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from gateway.errors import RequestError
from gateway.http.fields import read_fields
from ledger.identity.keys import Identity, LedgerUnavailable
from ledger.identity.tokens import PREFIX

INFERENCE = "inference"
USAGE = "usage"  # to read what one's own team used and what it cost
POLICIES = "policies"  # to read sets of policies and have them judged
OPERATIONS = "operations"  # to see engines, targets and routes, and what is held over them
BUDGETS = "budgets"  # to see one's own team's
PRICES = "prices"
INVOICES = "invoices"
CONTRACTS = "contracts"  # what own GPUs cost
CHANGES = "changes"  # the log of who changed what
KEYS = "keys"  # to see, make, revoke and rotate one's own team's
KEYS_OWN = "keys:own"  # to make keys for oneself, within what one may do oneself
ANY = "any"  # of routes that every key and person may ask, for they tell of who asks alone
EVERY_TEAM = ":all"  # after a scope: the same for all teams
APPLY = ":apply"  # after a scope: to change what it reads, too
APPLY_POLICIES = POLICIES + APPLY
_FOREIGN = ": keys of this gateway begin with `gw_`, and others count only where they were imported"
OPEN, PERSON = "open dashboard", "person"  # in place of a key's id


class KeyLookup(Protocol):
    """Lookup of a token's key: `KeyRing`, or a stand-in for keys (`gateway.batches`)."""

    def recall(self, token: str, now_us: int) -> Identity | None: ...

    async def lookup(self, token: str, now_us: int) -> Identity | None: ...


def token_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The bearer token (or `x-api-key`, `api-key`); raises 401 when there is none."""
    return require_token(read_fields(headers).token)


def require_token(token: str | None) -> str:
    """The token, or 401 when there is none."""
    if token is None:
        raise RequestError(
            "no_key",
            "No API key was sent. Send `Authorization: Bearer <key>`; "
            "`breakeven keys create` makes one.",
        )
    return token


async def authenticate(keys: KeyLookup, token: str, *, now_us: int, scope: str) -> Identity:
    """The key's identity, if it may do `scope`."""
    identity = await identify_token(keys, token, now_us=now_us)
    permit(identity, scope, "This key")
    return identity


def permit(identity: Identity, scope: str, who: str) -> None:
    """Raises 403 for who may not do `scope`."""
    held = identity.scopes
    if scope != ANY and scope not in held and held.isdisjoint((scope + EVERY_TEAM, scope + APPLY)):
        raise RequestError("forbidden", f"{who} does not have the scope `{scope}`.")


async def identify_token(keys: KeyLookup, token: str, *, now_us: int) -> Identity:
    """Return the identity of a token, whatever its rights."""
    try:
        identity = keys.recall(token, now_us) or await keys.lookup(token, now_us)
    except LedgerUnavailable as error:
        raise RequestError(
            "unavailable", "This key cannot be checked at the moment.", retry_after_s=1.0
        ) from error
    if identity is None:
        is_ours = token.startswith(f"{PREFIX}_")
        raise RequestError("bad_key", f"This API key is not valid{'' if is_ours else _FOREIGN}.")
    return identity


def residency_of(internal_only: bool | None, maker: Identity | None) -> str:
    """Return the residency of a new key; the maker's where nobody stated it."""
    if internal_only is None and maker is not None:
        return maker.residency
    return "internal_only" if internal_only else "any"


def allowed(models: Sequence[str] | None, asked: str, resolved: str) -> bool:
    """Whether a key's allow-list (None: everything) covers the name asked for or its alias.

    `openai/*` covers every model of that provider.
    """
    if models is None or asked in models or resolved in models:
        return True
    provider, slash, _ = resolved.partition("/")
    return bool(slash) and f"{provider}/*" in models
