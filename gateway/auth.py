"""Authentication of bearer tokens, and the scopes of API keys.

A missing, malformed, unknown, expired or revoked key gets 401. The message differs only for a
missing key and for a key in another product's format. While the database is unavailable, known keys
keep working and unknown keys get 503.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from gateway.errors import RequestError
from gateway.http.fields import read_fields
from ledger.identity.keys import Identity, LedgerUnavailable
from ledger.identity.tokens import PREFIX

INFERENCE = "inference"
USAGE = "usage"  # read the usage and cost of the own team
POLICIES = "policies"  # read and check policy sets
OPERATIONS = "operations"  # read engines, targets, routes and overrides
BUDGETS = "budgets"  # read the budgets of the own team
PRICES = "prices"
INVOICES = "invoices"
CONTRACTS = "contracts"  # read the GPU contracts
CHANGES = "changes"  # read the audit log
KEYS = "keys"  # list, create, revoke and rotate the own team's keys
KEYS_OWN = "keys:own"  # create keys with at most the person's own scopes
ANY = "any"  # any key or person: these routes describe only the caller
EVERY_TEAM = ":all"  # suffix: the scope applies to all teams
APPLY = ":apply"  # suffix: the scope also allows changes
APPLY_POLICIES = POLICIES + APPLY
_OTHER = "Use another key."
_FOREIGN = "Keys of this gateway begin with `gw_`; any other key works only if it was imported."
OPEN, PERSON = "open dashboard", "person"  # recorded instead of a key id


class KeyLookup(Protocol):
    """Lookup of the identity of a token, implemented by `KeyRing` and in `gateway.batches`."""

    def recall(self, token: str, now_us: int) -> Identity | None: ...

    async def lookup(self, token: str, now_us: int) -> Identity | None: ...


def token_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the token of `Authorization`, `x-api-key` or `api-key`.

    Raises `RequestError` (401) when there is none.
    """
    return require_token(read_fields(headers).token)


def require_token(token: str | None) -> str:
    """Return the token. Raises `RequestError` (401) when there is none."""
    if token is None:
        raise RequestError(
            "no_key",
            "No API key was sent. Send `Authorization: Bearer <key>`; "
            "`breakeven keys create` makes one.",
        )
    return token


async def authenticate(keys: KeyLookup, token: str, *, now_us: int, scope: str) -> Identity:
    """Return the identity of a key that has `scope`.

    Raises `RequestError`: 401 for an invalid key, 403 without the scope, 503 when the key cannot be
    checked.
    """
    identity = await identify_token(keys, token, now_us=now_us)
    permit(identity, scope, "This key")
    return identity


def permit(identity: Identity, scope: str, who: str) -> None:
    """Raise `RequestError` (403) if the identity does not have `scope`."""
    held = identity.scopes
    if scope != ANY and scope not in held and held.isdisjoint((scope + EVERY_TEAM, scope + APPLY)):
        raise RequestError(
            "forbidden",
            f"{who} does not have the scope `{scope}`. Ask the gateway's operator for it.",
        )


async def identify_token(keys: KeyLookup, token: str, *, now_us: int) -> Identity:
    """Return the identity of a token without checking a scope.

    Raises `RequestError`: 401 for an invalid key, 503 when the database is unavailable.
    """
    try:
        identity = keys.recall(token, now_us) or await keys.lookup(token, now_us)
    except LedgerUnavailable as error:
        raise RequestError(
            "unavailable",
            "The gateway cannot check this key, because its ledger does not respond. "
            "Retry in a second.",
            retry_after_s=1.0,
        ) from error
    if identity is None:
        is_ours = token.startswith(f"{PREFIX}_")
        raise RequestError(
            "bad_key",
            f"This API key is unknown, revoked or expired. {_OTHER if is_ours else _FOREIGN}",
        )
    return identity


def residency_of(internal_only: bool | None, maker: Identity | None) -> str:
    """Return the residency of a new key: as requested, else the residency of its creator."""
    if internal_only is None and maker is not None:
        return maker.residency
    return "internal_only" if internal_only else "any"


def allowed(models: Sequence[str] | None, asked: str, resolved: str) -> bool:
    """Return whether a key's list of models covers the requested or the resolved name.

    `models` is None for a key without a list. `openai/*` covers every model of that provider.
    """
    if models is None or asked in models or resolved in models:
        return True
    provider, slash, _ = resolved.partition("/")
    return bool(slash) and f"{provider}/*" in models
