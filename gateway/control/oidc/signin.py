"""Verified claims of a person's token, from the issuer's keys (`oidc`)."""

from typing import Any

from backends.address_policy import AddressPolicy
from gateway.clock import Clock
from gateway.config.schema_oidc import OidcSection
from gateway.control.oidc.issuer import AGAIN_S, Issuer, IssuerUnavailable
from gateway.control.oidc.tokens import NotValid, TokenRequirements, claims, is_jwt, key_id
from gateway.errors import RequestError


class OidcSignIn:
    """Token verification; one per worker."""

    def __init__(self, rule: TokenRequirements, issuer: Issuer) -> None:
        self._rule = rule
        self._issuer = issuer

    def is_sign_in_token(self, token: str) -> bool:
        return is_jwt(token)

    async def claims(self, token: str, now_us: int) -> dict[str, Any]:
        """Return the verified claims. Raises 401, or 503 while no keys are available."""
        try:
            keys = await self._issuer.keys(key_id(token))
            return claims(token, keys, self._rule, now_us // 1_000_000)
        except NotValid as error:
            raise RequestError(
                "bad_key", f"This sign-in token is not accepted: {error}."
            ) from error
        except IssuerUnavailable as error:
            words = "The identity provider does not respond. Retry later, or use an API key."
            raise RequestError("unavailable", words, retry_after_s=AGAIN_S) from error


def sign_in(oidc: OidcSection, clock: Clock) -> OidcSignIn:
    """Return the sign-in of a section that names an issuer."""
    assert oidc.issuer is not None
    rule = TokenRequirements(oidc.issuer, oidc.audiences, oidc.algorithms)
    return OidcSignIn(rule, Issuer(rule, AddressPolicy(oidc.networks), clock))
