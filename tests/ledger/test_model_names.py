"""A model counts on its own name and on those that it is a snapshot of; others keep their own."""

import pytest

from ledger.model_names import counted_names


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("openai/gpt-4o", ["openai/gpt-4o"]),
        ("openai/gpt-4o-2024-11-20", ["openai/gpt-4o-2024-11-20", "openai/gpt-4o"]),
        ("a/claude-20250929", ["a/claude-20250929", "a/claude"]),
        ("a/claude-LATEST", ["a/claude-LATEST", "a/claude-latest", "a/claude"]),
        ("openai/gpt-5.5#eu", ["openai/gpt-5.5#eu", "openai/gpt-5.5"]),
        ("a/M-20250929#eu", ["a/M-20250929#eu", "a/M-20250929", "a/m-20250929", "a/m"]),
        ("openai/gpt-4o-mini", ["openai/gpt-4o-mini"]),
        ("chat-2024-11-20", ["chat-2024-11-20"]),
        ("Chat", ["Chat"]),
    ],
)
def test_a_model_counts_where_it_is_named_less_exactly(model: str, names: list[str]) -> None:
    assert list(counted_names(model)) == names
