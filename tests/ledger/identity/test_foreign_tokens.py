"""Tokens of LiteLLM's: known by their digest, kept as something that opens nothing elsewhere."""

import hashlib

import pytest

from ledger.identity.foreign_tokens import (
    digest_of,
    foreign_hash,
    foreign_id,
    is_foreign_match,
)
from ledger.identity.tokens import secret_hash

PEPPER = b"p" * 32
DIGEST = hashlib.sha256(b"sk-token").hexdigest()


@pytest.mark.parametrize("token", ["", "gw_a_b", "SK-x", "sk-\u00e9", "sk-" + "x" * 300])
def test_what_is_none_of_its_tokens_has_no_digest(token) -> None:
    assert digest_of(token) is None


def test_the_digest_is_litellms_own() -> None:
    assert digest_of("sk-token") == DIGEST


def test_what_is_stored_depends_on_pepper_id_and_digest() -> None:
    key_id = foreign_id(PEPPER, DIGEST)
    stored = foreign_hash(PEPPER, key_id, DIGEST)
    assert is_foreign_match(stored, PEPPER, key_id, DIGEST)
    assert not is_foreign_match(stored, b"q" * 32, key_id, DIGEST)
    assert not is_foreign_match(stored, PEPPER, "other", DIGEST)
    assert foreign_id(b"q" * 32, DIGEST) != key_id
    for secret in (DIGEST, "sk-token", f"\0{DIGEST}"):
        assert secret_hash(PEPPER, key_id, secret) != stored
