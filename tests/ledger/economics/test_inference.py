"""Memory and speed arithmetic, beside measured values and the published claims' own inputs."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics import inference


def test_kv_bytes_per_token_of_llama_2_70b() -> None:
    gqa = inference.kv_bytes_per_token(layers=80, kv_heads=8, head_dim=128, bytes_per_element=2)
    mha = inference.kv_bytes_per_token(layers=80, kv_heads=64, head_dim=128, bytes_per_element=2)
    assert gqa == 327_680
    assert mha == 8 * gqa


def test_kv_bytes_agree_with_a_measured_cache() -> None:
    """vLLM on an H200: 88.94 GiB of cache held 291,424 tokens (rounded by the log to 0.01 GiB)."""
    gqa = inference.kv_bytes_per_token(layers=80, kv_heads=8, head_dim=128, bytes_per_element=2)
    held = inference.kv_cache_bytes(bytes_per_token=gqa, tokens=291_424)
    assert round(held / 2**30, 2) == 88.94


@given(st.fractions(0, 1), st.integers(0, 12))
def test_tokens_per_pass_is_the_expected_run_of_accepted_drafts(a: Fraction, k: int) -> None:
    """A run of exactly i < k acceptances yields i + 1 tokens; k acceptances yield k + 1."""
    expected = sum(a**i * (1 - a) * (i + 1) for i in range(k)) + a**k * (k + 1)
    assert inference.tokens_per_pass(acceptance=a, drafted=k) == expected


def test_acceptance_is_a_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        inference.tokens_per_pass(acceptance=Fraction(3, 2), drafted=4)
