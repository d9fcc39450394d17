"""An issuer beside the rest of the configuration."""

import pytest

from gateway.config.crosschecks_oidc import check_oidc
from gateway.config.schema import Settings
from gateway.config.schema_oidc import OidcSection

GOOD = {"issuer": "https://id.example.com", "audiences": ["breakeven"]}
WHO = {"access_file": "access.toml"}


@pytest.mark.parametrize(
    ("said", "shown", "words"),
    [
        ({}, {}, []),
        (OidcSection().model_dump(), {}, []),  # as a set of policies carries it
        (GOOD, WHO, []),
        (GOOD | {"issuer": "http://127.0.0.1:9000"}, WHO, []),
        (GOOD | {"issuer": "http://localhost:9000/realm"}, WHO, []),
        (GOOD | {"networks": ["10.0.0.0/8"]}, WHO, []),
        ({"audiences": ["a"]}, WHO, ["audiences: has no effect"]),
        ({"issuer": "https://id.example.com"}, WHO, ["audiences: is required"]),
        (GOOD, {}, ["issuer: `dashboard.access_file` is required"]),
        (GOOD | {"issuer": "http://id.example.com"}, WHO, ["issuer: `http://id.example.com` is"]),
        (GOOD | {"networks": ["10.0.0.1/8"]}, WHO, ["networks.0: 10.0.0.1/8 has host bits"]),
    ],
)
def test_what_an_issuer_needs(said, shown, words) -> None:
    found = [
        f"{'.'.join(map(str, fault.place[1:]))}: {fault.message}"
        for fault in check_oidc(Settings(oidc=said, dashboard=shown))
    ]
    assert len(found) == len(words)
    assert all(finding.startswith(word) for finding, word in zip(found, words, strict=True)), found
