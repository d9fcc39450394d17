"""Limits of models out of the map: named as prices are, nothing guessed."""

import json

import pytest

from ledger.prices.bundled import bundled_seed
from ledger.prices.modellimits import LIMIT_TOKENS, ModelLimits, limits_from_map, model_limits

ROW = {"mode": "chat", "litellm_provider": "openai", "max_output_tokens": 100}


def limits(**rows: dict) -> dict[str, ModelLimits]:
    return limits_from_map(
        json.dumps({key.replace("__", "/"): row for key, row in rows.items()}).encode()
    )


def test_rows_are_named_as_the_price_book_names_them() -> None:
    found = limits(gpt={**ROW, "max_input_tokens": 1000})
    assert found == {"openai/gpt": ModelLimits(100, 1000)}
    both = limits(gpt=ROW, openai__gpt={**ROW, "max_output_tokens": 200})
    assert both["openai/gpt"].output_tokens == 200


@pytest.mark.parametrize("limit", [None, "see the documentation", 0, -5, LIMIT_TOKENS + 1, 1e300])
def test_what_is_no_limit_is_left_out(limit) -> None:
    assert limits(gpt={**ROW, "max_output_tokens": limit}) == {}
    assert limits(gpt={**ROW, "mode": "video_generation"}) == {}


def test_the_prompt_takes_its_part_of_the_context() -> None:
    both = ModelLimits(output_tokens=8000, context_tokens=8000)
    assert (
        both.max_output_tokens(0),
        both.max_output_tokens(3000),
        both.max_output_tokens(9000),
    ) == (8000, 5000, 1)
    assert ModelLimits(100, 8000).max_output_tokens(3000) == 100


def test_the_installed_map_has_limits_for_models_with_prices() -> None:
    found = model_limits()
    priced = {draft.name for draft in bundled_seed().drafts}
    assert found["openai/gpt-4o-mini"] == ModelLimits(16_384, 128_000)
    assert len(priced & set(found)) > 1000
    assert all(1 <= finding.output_tokens <= finding.context_tokens for finding in found.values())
