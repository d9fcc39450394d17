"""What an honest provider counts for a picture, by its own documentation.

Written from the vendors' pages (their addresses are in `ledger/prices/picture_tokens.py`) and from
nothing of the product: the steps and constants as the pages have them, in floating point, which is
how vendors compute. `detail` is `low`, `high` or `auto`.
"""

import math
from collections.abc import Callable
from functools import partial

Bill = Callable[[int, int, str], int]


def openai_tiles(base: int, tile: int, width: int, height: int, detail: str) -> int:
    """Within 2,048 x 2,048, then a short side of 768; each tile of 512 has its tokens."""
    if detail == "low":
        return base
    shrunk = min(1.0, 2048 / max(width, height))
    wide, high = width * shrunk, height * shrunk
    shrunk = min(1.0, 768 / min(wide, high))
    tiles = math.ceil(round(wide * shrunk) / 512) * math.ceil(round(high * shrunk) / 512)
    return base + tile * max(tiles, 1)


def openai_patches(
    factor: float, budgets: dict[str, int], width: int, height: int, detail: str
) -> int:
    """Patches of 32 pixels; a picture that has more than the budget is shrunk until it has not.

    That sides are shrunk before, too, as the page has it, was not what was billed.
    """
    budget = budgets.get(detail, budgets["auto"])
    patches = math.ceil(width / 32) * math.ceil(height / 32)
    if patches > budget:
        shrunk = math.sqrt(32 * 32 * budget / (width * height))
        wide, high = width * shrunk / 32, height * shrunk / 32
        shrunk *= min(max(math.floor(wide), 1) / wide, max(math.floor(high), 1) / high)
        patches = math.ceil(width * shrunk / 32) * math.ceil(height * shrunk / 32)
    return math.ceil(min(patches, budget) * factor)


def anthropic(longest: int, most: int, width: int, height: int, _detail: str) -> int:
    """Patches of 28 pixels, after shrinking to the longest side and to the most tokens."""
    shrunk = min(1.0, longest / max(width, height))
    wide, high = max(1, round(width * shrunk)), max(1, round(height * shrunk))
    return min(most, math.ceil(wide / 28) * math.ceil(high / 28))


def gemini(width: int, height: int, _detail: str) -> int:
    """258 for a small picture, else for each tile of the crop unit."""
    if width <= 384 and height <= 384:
        return 258
    unit = min(768, max(256, math.floor(min(width, height) / 1.5)))
    return 258 * math.ceil(width / unit) * math.ceil(height / unit)


def mistral(patch: int, longest: int, width: int, height: int, _detail: str) -> int:
    """Patches within the longest side, and a token behind each row."""
    shrunk = max(1.0, max(width, height) / longest)
    wide = (round(width / shrunk) - 1) // patch + 1
    high = (round(height / shrunk) - 1) // patch + 1
    return max(1, high) * (max(1, wide) + 1)


def qwen(side: int, width: int, height: int, _detail: str) -> int:
    """Sides rounded to the square, within the processor's limits of pixels; two marks."""
    least, most = 4 * side * side, 16_384 * side * side
    high, wide = max(side, round(height / side) * side), max(side, round(width / side) * side)
    if high * wide > most:
        beta = math.sqrt(height * width / most)
        high = max(side, math.floor(height / beta / side) * side)
        wide = max(side, math.floor(width / beta / side) * side)
    elif high * wide < least:
        beta = math.sqrt(least / (height * width))
        high = math.ceil(height * beta / side) * side
        wide = math.ceil(width * beta / side) * side
    return min(high * wide // side**2, 16_384) + 2


def xai(width: int, height: int, _detail: str) -> int:
    """256 for each tile of 448, at most six, and one for the whole."""
    return 256 * (min(6, math.ceil(width / 448) * math.ceil(height / 448)) + 1)


WIDE = {"auto": 6144}
PATCHES_54 = {"auto": 2500, "low": 6144}
PATCHES_55 = {"auto": 10_000, "high": 2500, "low": 256}
PATCHES_56 = {"auto": 30_000, "high": 2500, "low": 256}  # more than 30,000 are refused

# By the rule that a price names, which is all that the adversary takes from the product.
BILLS: dict[str, Bill] = {
    "openai-tiles": partial(openai_tiles, 85, 170),
    "openai-tiles-4o-mini": partial(openai_tiles, 2833, 5667),
    "openai-tiles-5": partial(openai_tiles, 70, 140),
    "openai-tiles-o": partial(openai_tiles, 75, 150),
    "openai-patches-mini": partial(openai_patches, 1.62, WIDE),
    "openai-patches-nano": partial(openai_patches, 2.46, WIDE),
    "openai-patches-o4-mini": partial(openai_patches, 1.72, WIDE),
    "openai-patches-5": partial(openai_patches, 1.2, WIDE),
    "openai-patches-5-nano": partial(openai_patches, 1.5, WIDE),
    "openai-patches-5.4": partial(openai_patches, 1.2, PATCHES_54),
    "openai-patches-5.5": partial(openai_patches, 1.2, PATCHES_55),
    "openai-patches-5.6": partial(openai_patches, 1.2, PATCHES_56),
    "anthropic": partial(anthropic, 1568, 1568),
    "anthropic-high": partial(anthropic, 2576, 4784),
    "gemini-tiles": gemini,
    "gemini-3": lambda _width, _height, detail: 280 if detail == "low" else 1120,
    "pixtral": partial(mistral, 16, 1024),
    "mistral": partial(mistral, 28, 1540),
    "qwen-28": partial(qwen, 28),
    "qwen-32": partial(qwen, 32),
    "xai-tiles": xai,
}
# The dearest picture by the same pages, for one whose size the gateway cannot know. A Gemini has
# no end: there it is what `server.picture_tokens` states.
DEAREST: dict[str, int] = {
    "openai-tiles": 1445, "openai-tiles-4o-mini": 48_169, "openai-tiles-5": 1190,
    "openai-tiles-o": 1275, "openai-patches-mini": 9954, "openai-patches-nano": 15_115,
    "openai-patches-o4-mini": 10_568, "openai-patches-5": 7373, "openai-patches-5-nano": 9216,
    "openai-patches-5.4": 12_000, "openai-patches-5.5": 12_000, "openai-patches-5.6": 36_000,
    "anthropic": 1568, "anthropic-high": 4784,
    "gemini-tiles": 5_000, "gemini-3": 2240, "pixtral": 4160, "mistral": 3080, "qwen-28": 16_386,
    "qwen-32": 16_386, "xai-tiles": 1792,
}  # fmt: skip
