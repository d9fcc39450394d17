"""Each provider's published rule of its prompt cache; who publishes none has a usual one."""

import pytest

from ledger.prices.prompt_caches import PromptCacheRule, cache_rule_of
from ledger.prices.quotes import cache_rule
from ledger.prices.rates import Price, PriceTerms, rates_from


@pytest.mark.parametrize(
    ("name", "least", "marked"),
    [
        ("anthropic/claude-opus-4-5", 4096, True),
        ("anthropic/claude-opus-4-1", 1024, True),
        ("anthropic/claude-haiku-4-5", 4096, True),
        ("anthropic/claude-3-5-haiku-latest", 2048, True),
        ("anthropic/claude-sonnet-4-6", 2048, True),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 1024, True),
        ("vertex_ai/claude-opus-4-6", 4096, True),
        ("openai/gpt-5", 1024, False),
        ("azure/gpt-4o", 1024, False),
        ("gemini/gemini-2.5-flash", 2048, False),
        ("gemini/gemini-3-pro", 4096, False),
        ("deepseek/deepseek-chat", 64, False),
        ("mine/model", 1024, False),
    ],
)
def test_the_rule_of_a_model(name, least, marked) -> None:
    rule = cache_rule_of(name)
    assert (rule.least_tokens, rule.marked, rule.promised) == (least, marked, marked)
    assert rule.readable(least - 1) == 0
    assert rule.readable(least) == least


def test_what_is_read_comes_in_steps() -> None:
    rule = PromptCacheRule(1024, step_tokens=128)
    assert [rule.readable(tokens) for tokens in (1023, 1024, 1151, 1152)] == [0, 1024, 1024, 1152]


def test_where_a_cached_token_costs_as_much_as_another_there_is_no_rule() -> None:
    def price(**rates: int) -> Price:
        listed = rates_from({"input": 10, "output": 40, **rates})
        return Price(1, "openai/gpt-5", "b", 0, PriceTerms(listed))

    assert cache_rule(price(cached=5)) == cache_rule_of("openai/gpt-5")
    assert cache_rule(price()) is None
