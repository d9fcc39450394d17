"""The same weights under the names that vendors give them."""

import pytest

from gateway.config.sameweights import same_weights

OFFERS = [
    ("dear/meta-llama/Llama-3.1-8B-Instruct", 300), ("free/llama-3.1-8b-instruct", 0),
    ("cheap/Meta-Llama-3.1-8B-Instruct-Turbo", 100), ("other/llama-3.1-70b-instruct", 50),
    ("base/llama-3.1-8b", 10),
]  # fmt: skip


@pytest.mark.parametrize(
    ("served", "found"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "cheap/Meta-Llama-3.1-8B-Instruct-Turbo"),
        ("llama-3.1-8b-instruct-fp8", "cheap/Meta-Llama-3.1-8B-Instruct-Turbo"),
        ("llama-3.1-8b", "base/llama-3.1-8b"),
        ("chat", None),
        ("", None),
    ],
)
def test_the_cheapest_that_sells_them(served, found) -> None:
    assert same_weights(served, OFFERS) == found
