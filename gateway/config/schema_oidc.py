"""Section `oidc`: the issuer whose tokens the admin API accepts; off if missing."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.sections import URL, ConfigSection

Issuer = Annotated[str, Field(pattern=URL, max_length=300)]
# Asymmetric signatures only: no HMAC with a public key, and not `none`.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519"
]


class OidcSection(ConfigSection):
    """Identity provider of the admin API's tokens; permissions are in `dashboard.access_file`."""

    issuer: Issuer | None = Field(
        None,
        description="address of the identity provider, as its tokens name it (`iss`); its tokens "
        "open the admin API as keys do (docs/how-to/dashboard-access.md)",
    )
    audiences: tuple[Annotated[str, Field(min_length=1, max_length=300)], ...] = Field(
        (), description="values of `aud` in tokens that are meant for this gateway"
    )
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = Field(
        ("RS256", "PS256", "ES256"), description="algorithms of signatures that are accepted"
    )
    networks: tuple[str, ...] = Field(
        (), description="private networks that the issuer's name may lead to: 10.0.0.0/8"
    )
