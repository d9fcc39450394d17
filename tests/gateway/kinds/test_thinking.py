"""A request asks for thoughts by any provider's member, unless that switches them off."""

import pytest
from msgspec import Raw

from gateway.kinds.thinking import asks_to_think


@pytest.mark.parametrize(
    ("name", "value", "asks"),
    [
        ("reasoning_effort", '"high"', True),
        ("reasoning_effort", '"none"', False),
        ("reasoning_effort", "null", False),
        ("reasoning", '{"effort": "low"}', True),
        ("reasoning", '{"enabled": false}', False),
        ("reasoning", '{"max_tokens": 0}', False),
        ("thinking", '{"type": "enabled", "budget_tokens": 12000}', True),
        ("thinking", '{"type": "disabled"}', False),
        ("enable_thinking", "true", True),
        ("enable_thinking", "false", False),
        ("thinking_budget", "0", False),
        ("think", '"low"', True),
        ("chat_template_kwargs", '{"enable_thinking": true}', True),
        ("chat_template_kwargs", '{"enable_thinking": false}', False),
        ("chat_template_kwargs", '{"custom": 1}', False),
        ("extra_body", '{"google": {"thinking_config": {"thinking_budget": 512}}}', True),
        ("include_reasoning", "false", True),  # hidden, and billed all the same
        ("include_reasoning", "null", False),
        ("reasoning_format", '"hidden"', True),
        ("temperature", "1", False),
    ],
)
def test_a_member_asks_to_think_unless_it_says_no(name: str, value: str, asks: bool) -> None:
    assert asks_to_think({name: Raw(value.encode())}) is asks
    assert asks_to_think({name: Raw(value.encode()), "reasoning_effort": Raw(b'"low"')})
