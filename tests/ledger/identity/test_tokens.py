"""Tokens are split strictly and compared whole."""

import pytest

from ledger.identity.tokens import TokenParts, is_match, secret_hash, split_token, token_text


def test_a_token_splits_into_what_it_was_made_of():
    assert split_token(token_text("ab12", "s3cret_with_underscore")) == TokenParts(
        "ab12", "s3cret_with_underscore"
    )


@pytest.mark.parametrize(
    "text",
    ["", "gw", "gw_", "gw_a", "gw_a_", "gw__b", "sk-abc", "GW_a_b", "gw_a_\u00e9", "x" * 999],
)
def test_anything_else_is_no_token(text):
    assert split_token(text) is None


def test_a_hash_is_bound_to_pepper_id_and_secret():
    stored = secret_hash(b"pepper", "id", "secret")
    assert is_match(stored, b"pepper", TokenParts("id", "secret"))
    assert not is_match(stored, b"pepper", TokenParts("id", "secreT"))
    assert not is_match(stored, b"pepper", TokenParts("other", "secret"))
    assert not is_match(stored, b"Pepper", TokenParts("id", "secret"))


def test_a_secret_is_in_no_representation():
    assert "s3cret" not in f"{TokenParts('id', 's3cret')!r} {TokenParts('id', 's3cret')}"
