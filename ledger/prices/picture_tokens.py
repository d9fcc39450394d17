"""Token counts of input pictures, by the published rule of each vendor.

A price names its rule (`image_tokens`); some model families have a rule by name. No rule counts
less than its vendor: a picture may be rotated (EXIF), so rules ignore which side is the width, and
values that a vendor rounds are rounded up here. A value of `detail` counts only where the rule
names it; any other value counts as the finest.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isqrt
from typing import Final, NamedTuple

# Sources, read 2026-11-27 as stored copies of the vendors' pages:
# OpenAI: developers.openai.com/api/docs/guides/images-vision ("Model sizing behavior", "Calculating
# costs"): tiles of 512 within 2048 x 2048 and a short side of 768; patches of 32, times a factor,
# within a limit by model and detail. Until 2026 the limit was 1,536 for all models; now GPT-4.1
# mini and GPT-5.2 have 6,144. GPT-5.6 and GPT-6 have none, and refuse pictures of more than
# 30,000 patches. Models that the page calls deprecated (GPT-5 mini and nano, o4-mini, GPT-4.1
# nano) have no limit there and count as GPT-4.1 mini here. The page also limits sides, to 2,048
# pixels at `high`; a published data set has counts above that (huggingface.co/datasets/JOHNISKING/
# image-token-cost: 2,931 for 3840 x 2160), so no rule but `low` of GPT-5.5 on limits sides.
# Billing may round up by one token, which the allowance for a content part's text covers.
# Anthropic: platform.claude.com/docs/en/build-with-claude/vision: a token for each 28 x 28 pixels,
# at most 1,568; 4,784 within 2,576 pixels a side for Claude 4.7 and later (5, 5.5, ... among them).
# Before 2026 it was width x height / 750. A project measured three or four tokens more for each
# picture (github.com/diegosouzapw/OmniGlyph), which the allowance for a part's text covers.
# Gemini: ai.google.dev/gemini-api/docs/tokens and .../media-resolution: 258 up to 384 x 384, above
# that 258 for each tile of 768 or, by the crop unit of Vertex's page, less; Gemini 3 at most 1,120,
# 2,240 where a request asks for ultra high.
# Mistral: mistralai.github.io/mistral-common/usage/images: patches of 16 within 1,024 (Pixtral), of
# 28 within 1,540 (later ones), and one token for each row.
# Qwen: huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct: one token for each 28 x 28 (Qwen3: 32 x 32)
# pixels, at most 16,384, and two marks.
# xAI: docs.x.ai/docs/guides/image-understanding: 256 for each tile of 448,
# at most six, and one tile more. The page was read in 2026-11; no stored copy of it was found.

_ULTRA_TOKENS: Final = 2_240


class PictureRule(NamedTuple):
    """The token rule of a vendor.

    `tokens_of` takes the longer side, the shorter side (in pixels) and the requested detail. `most`
    is the maximum for one picture in tokens, `None` if there is no maximum.
    """

    tokens_of: Callable[[int, int, str], int]
    most: int | None


def picture_tokens(rule: str, width: int, height: int, *, detail: str = "") -> int:
    """Return an upper bound of the vendor's token count. Raises `KeyError` for unknown rules."""
    known = RULES[rule]
    tokens = known.tokens_of(max(width, height, 1), max(min(width, height), 1), detail)
    return tokens if known.most is None else min(tokens, known.most)


def most_picture_tokens(rule: str) -> int:
    """Return the maximum tokens of one picture, 0 if the rule has no maximum."""
    return RULES[rule].most or 0


@lru_cache(maxsize=4096)
def rule_of_model(name: str) -> str:
    """Return the published rule of `provider/model`, "" if none is known."""
    for pattern, rule in _MODELS:
        if pattern.fullmatch(name):
            return rule
    return ""


def _openai_tiles(base: int, tile: int) -> PictureRule:
    """Return a rule by tiles of 512 pixels, after shrinking the picture.

    The longer side is shrunk to 2,048 pixels, then the shorter side to 768. Nothing is enlarged.
    """

    def count(longer: int, shorter: int, detail: str) -> int:
        if detail == "low":
            return base
        wide, slim = longer, shorter
        if longer > 2048:
            wide, slim = 2048, _scaled(shorter, 2048, longer)
        if slim > 768:
            # A vendor that rounds between the two steps differs by at most three pixels.
            rounded = 3 if longer > 2048 and shorter * 2048 % longer else 0
            wide, slim = min(wide, _scaled(longer, 768, shorter) + rounded), 768
        return base + tile * _grid(wide, slim, 512)

    return PictureRule(count, base + tile * 8)


# Patches of 32 pixels; a side of 512 has 16.
_LOW, _HIGH, _WIDE, _ORIGINAL, _UNREFUSED = 256, 2_500, 6_144, 10_000, 30_000


def _openai_patches(
    factor_percent: int, finest: int, by_detail: Mapping[str, int] | None = None
) -> PictureRule:
    """Return a rule by patches of 32 pixels, limited to a number of patches per detail.

    `factor_percent` is the tokens per 100 patches; `finest` is the limit for other details.
    """
    budgets = by_detail or {}

    def count(longer: int, shorter: int, detail: str) -> int:
        patches = min(_grid(longer, shorter, 32), budgets.get(detail, finest))
        return _percent(patches, factor_percent)

    return PictureRule(count, _percent(finest, factor_percent))


def _anthropic(most: int) -> PictureRule:
    """Return a rule of area / 750, or of patches of 28 pixels if those are more.

    Thin pictures have more patches.
    """

    def count(longer: int, shorter: int, _detail: str) -> int:
        return max(-(-longer * shorter // 750), _grid(longer, shorter, 28))

    return PictureRule(count, most)


def _gemini_tiles(longer: int, shorter: int, _detail: str) -> int:
    """Return tokens by tiles of 768 pixels or of the crop unit, whichever count is higher."""
    if longer <= 384:
        return 258
    unit = min(max(shorter * 2 // 3, 256), 768)
    return 258 * max(_grid(longer, shorter, unit), _grid(longer, shorter, 768))


def _rows_of_patches(side: int, limit: int) -> PictureRule:
    """Return a rule by patches within a longest side, plus one token per row."""

    def count(longer: int, shorter: int, _detail: str) -> int:
        if longer > limit:
            longer, shorter = limit, _scaled(shorter, limit, longer)
        return _grid(longer, shorter, side) + -(-longer // side)

    rows = -(-limit // side)
    return PictureRule(count, rows * (rows + 1))


def _qwen(side: int) -> PictureRule:
    """Return a rule by squares of `side` pixels, plus two marker tokens.

    The minimum of about 256 squares covers small pictures, which the model enlarges.
    """

    def count(longer: int, shorter: int, _detail: str) -> int:
        return max(_grid(longer, shorter, side), 256 + isqrt(longer // shorter) + 1) + 2

    return PictureRule(count, 16_384 + 2)


def _xai(longer: int, shorter: int, _detail: str) -> int:
    return 256 * (_grid(longer, shorter, 448) + 1)


def _gemini_3(_longer: int, _shorter: int, detail: str) -> int:
    """Return the maximum tokens at each resolution; `ultra_high` and unknown values cost most."""
    return 1_120 if detail in ("", "auto", "low", "medium", "high") else _ULTRA_TOKENS


def _grid(longer: int, shorter: int, side: int) -> int:
    return -(-longer // side) * -(-shorter // side)


def _scaled(length: int, to: int, of: int) -> int:
    return -(-length * to // of)


def _percent(count: int, percent: int) -> int:
    return -(-count * percent // 100)


RULES: Final[Mapping[str, PictureRule]] = {
    "openai-tiles": _openai_tiles(85, 170),
    "openai-tiles-4o-mini": _openai_tiles(2833, 5667),
    "openai-tiles-5": _openai_tiles(70, 140),
    "openai-tiles-o": _openai_tiles(75, 150),
    "openai-patches-mini": _openai_patches(162, _WIDE),
    "openai-patches-nano": _openai_patches(246, _WIDE),
    "openai-patches-o4-mini": _openai_patches(172, _WIDE),
    "openai-patches-5": _openai_patches(120, _WIDE),
    "openai-patches-5-nano": _openai_patches(150, _WIDE),
    "openai-patches-5.4": _openai_patches(
        120, _ORIGINAL, {"low": _WIDE, "high": _HIGH, "auto": _HIGH, "": _HIGH}
    ),
    "openai-patches-5.5": _openai_patches(120, _ORIGINAL, {"low": _LOW, "high": _HIGH}),
    "openai-patches-5.6": _openai_patches(120, _UNREFUSED, {"low": _LOW, "high": _HIGH}),
    "anthropic": _anthropic(1_600),
    "anthropic-high": _anthropic(4_784),
    "gemini-tiles": PictureRule(_gemini_tiles, None),
    "gemini-3": PictureRule(_gemini_3, _ULTRA_TOKENS),
    "pixtral": _rows_of_patches(16, 1_024),
    "mistral": _rows_of_patches(28, 1_540),
    "qwen-28": _qwen(28),
    "qwen-32": _qwen(32),
    "xai-tiles": PictureRule(_xai, 256 * 7),
}
# Models with a published rule, at every provider that publishes the same one: Azure's page on
# images has OpenAI's tiles for the 4o family, Vertex's page has Gemini's, and Anthropic's page
# covers its models at every provider. Not published as of 2026-11-27: the Pro, Codex and chat
# variants of GPT-5.1 and later, whether Azure counts GPT-5 as OpenAI does, and whether OpenRouter
# changes pictures. GPT-6 Astra is in the examples of OpenAI's page, and its counts and those of
# Claude 5.5 were measured (the data set above).
_DATED: Final = r"(?:-latest|-\d{4}-\d{2}-\d{2})?"
_AZURE: Final = r"azure/(?:(?:eu|us|global|global-standard)/)?"
_CLAUDE: Final = "(?:opus|sonnet|haiku)"
_LATER_CLAUDE: Final = "(?:opus|sonnet|haiku|fable|mythos)"
_CLAUDE_AT: Final = (
    r"(?:anthropic/|azure_ai/|vertex_ai/|bedrock/(?:(?:us|eu|apac|au|jp|global)\.)?anthropic\.)"
)
_GEMINI_AT: Final = "(?:gemini|vertex_ai)/gemini-"
_CLAUDE_DATED: Final = r"(?:-latest|[-@]\d{8}|@default)?(?:-v\d(?::\d)?)?"
_MODELS: Final = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (rf"(?:openai/|{_AZURE})gpt-4o-mini{_DATED}", "openai-tiles-4o-mini"),
        (rf"(?:openai/|{_AZURE})gpt-4o{_DATED}", "openai-tiles"),
        (rf"openai/(?:chatgpt-4o|gpt-4\.1|gpt-4-turbo){_DATED}", "openai-tiles"),
        (rf"openai/(?:gpt-5|gpt-5-chat|gpt-5\.1){_DATED}", "openai-tiles-5"),
        (rf"openai/(?:o1|o1-pro|o3){_DATED}", "openai-tiles-o"),
        (rf"openai/gpt-4\.1-mini{_DATED}", "openai-patches-mini"),
        (rf"openai/gpt-4\.1-nano{_DATED}", "openai-patches-nano"),
        (rf"openai/(?:gpt-5-mini|gpt-5\.2){_DATED}", "openai-patches-5"),
        (rf"openai/gpt-5-nano{_DATED}", "openai-patches-5-nano"),
        (rf"openai/gpt-5\.4(?:-mini|-nano)?{_DATED}", "openai-patches-5.4"),
        (rf"openai/gpt-5\.5{_DATED}", "openai-patches-5.5"),
        (rf"openai/(?:gpt-5\.6-(?:sol|terra|luna)|gpt-6-astra){_DATED}", "openai-patches-5.6"),
        (rf"openai/o4-mini{_DATED}", "openai-patches-o4-mini"),
        (
            rf"{_CLAUDE_AT}claude-(?:3(?:-[57])?-{_CLAUDE}|{_CLAUDE}-4(?:-[0-6])?){_CLAUDE_DATED}",
            "anthropic",
        ),
        (
            rf"{_CLAUDE_AT}claude-(?:{_CLAUDE}-4-[78]|{_LATER_CLAUDE}-[5-9](?:-\d)?){_CLAUDE_DATED}",
            "anthropic-high",
        ),
        (
            rf"{_GEMINI_AT}(?:1\.5|2\.0|2\.5)-(?:pro|flash|flash-lite|flash-8b)(?:-\d{{3}})?",
            "gemini-tiles",
        ),
    )
)
