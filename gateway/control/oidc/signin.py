"""A token to what it says of a person: the issuer's keys, and what counts (`oidc`)."""

from typing import Any

from backends.reach import Reach
from gateway.clock import Clock
from gateway.config.schema_oidc import Oidc
from gateway.control.oidc.issuer import AGAIN_S, Away, Issuer
from gateway.control.oidc.tokens import NotValid, Rule, claims, key_id, looks_signed
from gateway.errors import RequestError


class SignIn:
    """One per worker."""

    def __init__(self, rule: Rule, issuer: Issuer) -> None:
        self._rule = rule
        self._issuer = issuer

    def takes(self, token: str) -> bool:
        return looks_signed(token)

    async def claims(self, token: str, now_us: int) -> dict[str, Any]:
        """What the issuer says of who holds it. Raises 401, or 503 while nobody can tell."""
        try:
            keys = await self._issuer.keys(key_id(token))
            return claims(token, keys, self._rule, now_us // 1_000_000)
        except NotValid as error:
            raise RequestError("bad_key", f"This sign-in does not hold: {error}.") from error
        except Away as error:
            words = "The identity provider cannot be asked at the moment; keys work."
            raise RequestError("unavailable", words, retry_after_s=AGAIN_S) from error


def sign_in(oidc: Oidc, clock: Clock) -> SignIn:
    """Of a section that names an issuer."""
    assert oidc.issuer is not None
    rule = Rule(oidc.issuer, oidc.audiences, oidc.algorithms)
    return SignIn(rule, Issuer(rule, Reach(oidc.networks), clock))
