"""Keys of an identity provider, fetched through the gateway's address policy and cached.

Discovery and key set are fetched from a checked address, without redirects, within 5 s and 256 KiB
each. They are cached for `FRESH_S`. A token with an unknown key id triggers a fetch at once, since
keys rotate this way, but at most every `PAUSE_S`: made-up ids cost the issuer one fetch in that
time. While the issuer is unreachable its last keys stay valid for `KEPT_S`.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
from joserfc.jwk import KeySet

from backends.address_policy import LOCALHOST, AddressPolicy, parse_address
from backends.pinned import PinnedTransport
from gateway.clock import Clock
from gateway.control.oidc.tokens import NoKey, TokenRequirements, usable

FRESH_S = 300.0
KEPT_S = 3600.0
PAUSE_S = 30.0  # between two fetches for a key that is not there
AGAIN_S = 5.0  # after a fetch that failed while there are no keys at all
WITHIN_S = 5.0
LARGEST = 256 * 1024  # bytes of one document
WELL_KNOWN = "/.well-known/openid-configuration"

log = logging.getLogger("breakeven.oidc")


class IssuerUnavailable(Exception):
    """The issuer's keys cannot be fetched, and none are cached."""


class Issuer:
    """Key cache of one issuer; one per worker. `fetches` counts the requests to the issuer."""

    def __init__(
        self,
        rule: TokenRequirements,
        reach: AddressPolicy,
        clock: Clock,
        connect: Callable[[AddressPolicy], httpx.AsyncBaseTransport] = PinnedTransport,
    ) -> None:
        self._rule = rule
        self._reach = reach
        self._clock = clock
        self._connect = connect
        self._turn = asyncio.Lock()
        self._keys: KeySet | None = None
        self._fetched_s = self._tried_s = float("-inf")
        self.fetches = 0

    async def keys(self, kid: str | None) -> KeySet:
        """Return keys that may have signed a token with `kid`. Raises `IssuerUnavailable`."""
        under_way = self._turn.locked()  # a caller with a known key need not wait for it
        if self._lacks(kid) if under_way else self._is_fetch_due(kid):
            async with self._turn:
                if self._is_fetch_due(kid):
                    await self._fetch()
        found = self._current_keys()
        if found is None:
            raise IssuerUnavailable
        return found

    def _current_keys(self) -> KeySet | None:
        over = self._clock.now_s() - self._fetched_s > KEPT_S
        return None if over else self._keys

    def _lacks(self, kid: str | None) -> bool:
        keys = self._current_keys()
        return keys is None or not (kid is None or any(key.kid == kid for key in keys))

    def _is_fetch_due(self, kid: str | None) -> bool:
        """Return whether to fetch now: a key is missing or all are old, and the pause is over."""
        now_s = self._clock.now_s()
        old = now_s - self._fetched_s >= FRESH_S
        pause_s = AGAIN_S if self._current_keys() is None else PAUSE_S
        return (old or self._lacks(kid)) and now_s - self._tried_s >= pause_s

    async def _fetch(self) -> None:
        self._tried_s = self._clock.now_s()
        self.fetches += 1
        try:
            async with asyncio.timeout(WITHIN_S):
                document = await self._documents()
            self._keys = usable(document, self._rule)
            self._fetched_s = self._clock.now_s()
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, NoKey, ValueError) as error:
            why = str(error) or type(error).__name__
            log.warning("cannot read signing keys issuer=%s error=%s", self._rule.issuer, why)

    async def _documents(self) -> dict[str, Any]:
        transport = self._connect(self._reach)
        async with httpx.AsyncClient(transport=transport, timeout=WITHIN_S) as client:
            issuer = self._rule.issuer
            discovered = await _document(client, issuer.removesuffix("/") + WELL_KNOWN)
            if discovered.get("issuer") != issuer:
                raise ValueError("its discovery document names another issuer")
            address = discovered.get("jwks_uri")
            if not isinstance(address, str) or (why := reason_against_address(issuer, address)):
                raise ValueError(why if isinstance(address, str) else "it names no `jwks_uri`")
            return await _document(client, address)


def reason_against_address(issuer: str, address: str) -> str | None:
    """Return why keys are not fetched there. Only the configuration may name an IP address."""
    own, other = urlsplit(issuer), urlsplit(address)
    if (other.scheme, other.hostname) == (own.scheme, own.hostname):
        return None
    if other.scheme != "https":
        return "its `jwks_uri` is not https"
    host = other.hostname or ""
    if host == own.hostname:
        return None
    literal = parse_address(host) is not None or host == LOCALHOST
    return "its `jwks_uri` is on a machine that is not its own" if literal else None


async def _document(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """Return a JSON document of at most `LARGEST` bytes; compressed answers are refused."""
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    async with client.stream("GET", url, headers=headers) as answer:
        if answer.status_code != httpx.codes.OK or "content-encoding" in answer.headers:
            raise ValueError(f"{url} answered {answer.status_code}")
        body = bytearray()
        async for part in answer.aiter_raw():
            body += part
            if len(body) > LARGEST:
                raise ValueError(f"{url} answered more than {LARGEST} bytes")
    try:
        found = json.loads(body)
    except RecursionError as error:
        raise ValueError(f"{url} is nested too deep") from error
    if isinstance(found, dict):
        return found
    raise ValueError(f"{url} is not a JSON object")
