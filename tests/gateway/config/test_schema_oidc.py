"""The section `oidc`: off by default, addresses without passwords, signatures by private keys."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_oidc import OidcSection


def test_it_is_off_unless_an_issuer_is_named() -> None:
    usual = OidcSection()
    assert (usual.issuer, usual.audiences, usual.networks) == (None, (), ())
    assert usual.algorithms == ("RS256", "PS256", "ES256")


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "id.example.com"},
        {"issuer": "https://me:secret@id.example.com"},
        {"algorithms": ["HS256"]},
        {"algorithms": ["none"]},
        {"algorithms": []},
        {"audiences": [""]},
        {"audience": "breakeven"},
    ],
)
def test_what_would_let_in_anybody_is_refused(said) -> None:
    with pytest.raises(ValidationError, match=next(iter(said))):
        OidcSection(**said)
