"""Pictures are counted as vendors say in their documentation, and never at less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.prices.picture_tokens import (
    RULES,
    most_picture_tokens,
    picture_tokens,
    rule_of_model,
)

SIDES = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("rule", "width", "height", "detail", "tokens"),
    [
        ("openai-tiles", 1024, 1024, "high", 765),  # the examples of the vendors' pages
        ("openai-tiles", 2048, 4096, "high", 1105),
        ("openai-tiles", 4096, 8192, "low", 85),
        ("openai-tiles", 4096, 8192, "LOW", 1105),
        ("openai-tiles-4o-mini", 1, 1, "", 8_500),
        ("openai-tiles-4o-mini", 1, 1, "low", 2_833),
        ("openai-tiles-5", 1024, 1024, "", 630),
        ("openai-patches-mini", 1024, 1024, "", 1659),
        ("openai-patches-nano", 8000, 8000, "low", 15_115),
        # Red before: a budget of 1,536 patches held these at 2,489.
        ("openai-patches-mini", 2048, 2048, "", 6_636),
        ("openai-patches-mini", 8000, 8000, "high", 9_954),
        ("openai-patches-5", 1024, 1024, "", 1_229),
        ("openai-patches-5.4", 1024, 1024, "high", 1_229),
        ("openai-patches-5.4", 2048, 2048, "high", 3_000),
        ("openai-patches-5.4", 2048, 2048, "", 3_000),
        ("openai-patches-5.4", 2048, 2048, "low", 4_916),
        ("openai-patches-5.4", 6000, 6000, "original", 12_000),
        ("openai-patches-5.5", 4032, 3024, "auto", 12_000),
        ("openai-patches-5.5", 8000, 8000, "", 12_000),
        ("openai-patches-5.5", 8000, 8000, "low", 308),
        ("openai-patches-5.6", 4032, 3024, "", 14_364),
        ("openai-patches-5.6", 4096, 512, "", 2_458),
        ("openai-patches-5.6", 3840, 2160, "high", 3_000),
        ("openai-patches-5.6", 9000, 9000, "", 36_000),
        ("anthropic-high", 1920, 1080, "", 2_765),  # 2,691 in patches
        ("anthropic-high", 3840, 2160, "", 4_784),
        ("anthropic", 1000, 1000, "", 1334),
        ("anthropic", 8000, 8000, "", 1600),
        ("gemini-tiles", 384, 384, "", 258),
        ("gemini-tiles", 960, 540, "", 1548),
        ("pixtral", 1024, 1024, "", 4160),
        ("qwen-28", 1280, 720, "", 1198),
        ("xai-tiles", 448, 448, "", 512),
        ("gemini-3", 4000, 3000, "", 1_120),
        ("gemini-3", 4000, 3000, "high", 1_120),
        ("gemini-3", 4000, 3000, "ultra_high", 2_240),
        ("gemini-3", 1, 1, "a word of next year", 2_240),
    ],
)
def test_the_documented_examples(rule, width, height, detail, tokens) -> None:
    assert picture_tokens(rule, width, height, detail=detail) == tokens


@given(st.sampled_from(sorted(RULES)), SIDES, SIDES)
def test_a_turned_picture_counts_the_same_and_none_is_free(rule, width, height) -> None:
    tokens = picture_tokens(rule, width, height)
    assert tokens == picture_tokens(rule, height, width) >= 1
    assert not most_picture_tokens(rule) or tokens <= most_picture_tokens(rule)


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_whoever_rounds_in_between_counts_no_more_tiles(width, height) -> None:
    """The steps of the page, each with its own rounding."""
    for rounded in (int, round, lambda value: -int(-value // 1)):
        sides = [width, height]
        if max(sides) > 2048:
            sides = [rounded(side * 2048 / max(sides)) for side in sides]
        if min(sides) > 768:
            sides = [rounded(side * 768 / min(sides)) for side in sides]
        tiles = -(-max(sides[0], 1) // 512) * -(-max(sides[1], 1) // 512)
        assert 85 + 170 * tiles <= picture_tokens("openai-tiles", width, height)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("openai/gpt-4o-mini", "openai-tiles-4o-mini"),
        ("openai/gpt-4o-2024-08-06", "openai-tiles"),
        ("openai/gpt-4.1-mini", "openai-patches-mini"),
        ("openai/gpt-5-mini", "openai-patches-5"),
        ("openai/gpt-5-nano-2025-08-07", "openai-patches-5-nano"),
        ("openai/gpt-5.1", "openai-tiles-5"),
        ("openai/gpt-5.2-2025-12-11", "openai-patches-5"),
        ("openai/gpt-5.4-mini", "openai-patches-5.4"),
        ("openai/gpt-5.5", "openai-patches-5.5"),
        ("openai/gpt-5.6-luna", "openai-patches-5.6"),
        ("openai/gpt-6-astra", "openai-patches-5.6"),
        ("openai/gpt-5.2-codex", ""),  # nobody has said
        ("openai/gpt-5.5-pro", ""),
        ("openai/gpt-6", ""),
        ("openai/gpt-4o-audio-preview", ""),
        ("anthropic/claude-sonnet-4-5-20250929", "anthropic"),
        ("anthropic/claude-opus-4-20250514", "anthropic"),
        ("anthropic/claude-opus-4-7", "anthropic-high"),
        ("gemini/gemini-2.5-flash", "gemini-tiles"),
        ("acme/gpt-4o", ""),
        ("azure/gpt-4o", "openai-tiles"),
        ("azure/eu/gpt-4o-2024-08-06", "openai-tiles"),
        ("azure/global-standard/gpt-4o-mini", "openai-tiles-4o-mini"),
        ("azure/gpt-5", ""),
        ("vertex_ai/gemini-2.5-pro", "gemini-tiles"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "anthropic"),
        ("vertex_ai/claude-opus-4-7@default", "anthropic-high"),
        ("bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0", "anthropic"),
        ("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic"),
        ("bedrock/eu.anthropic.claude-opus-4-6-v1", "anthropic"),
        ("azure_ai/claude-opus-4-5", "anthropic"),
        ("anthropic/claude-sonnet-5", "anthropic-high"),
        ("anthropic/claude-opus-5-5", "anthropic-high"),
        ("anthropic/claude-fable-5-1-20260901", "anthropic-high"),
        ("bedrock/us.anthropic.claude-opus-5-v1:0", "anthropic-high"),
        ("bedrock/amazon.nova-pro-v1:0", ""),
        ("gemini/gemini-3-flash-preview", ""),
        ("openrouter/openai/gpt-4o", ""),
    ],
)
def test_a_family_has_its_published_rule(name, rule) -> None:
    assert rule_of_model(name) == rule


def test_an_unknown_rule_is_no_rule() -> None:
    with pytest.raises(KeyError):
        picture_tokens("acme", 1, 1)
