"""The section of a provider: what prices and bills call it."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_providers import ProviderSection


@pytest.mark.parametrize(
    ("prices_as", "name"),
    [(None, "flex/gpt-5"), ("openai", "openai/gpt-5"), ("openai/gpt-4o", "openai/gpt-4o")],
)
def test_prices_are_of_a_model_or_of_another_providers_names(prices_as, name) -> None:
    assert ProviderSection(prices_as=prices_as).price_name("flex/gpt-5") == name


def test_bills_come_from_itself_unless_another_is_named() -> None:
    assert ProviderSection().sends_bills("flex") == "flex"
    assert ProviderSection(billed_with="openai").sends_bills("flex") == "openai"


def test_a_tier_is_a_word_of_small_letters() -> None:
    assert ProviderSection(tier="flex").tier == "flex"
    with pytest.raises(ValidationError, match="tier"):
        ProviderSection(tier="Flex!")
