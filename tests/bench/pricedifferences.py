"""Where LiteLLM, `genai-prices` and the price book disagree, and who is right by whose word.

Comments of `genai-prices` quote the providers' pages with the day on which they were read.
"""

import json
from dataclasses import dataclass

from ledger.journals.records import TokenCounts
from ledger.prices.book import prompt_tokens
from ledger.prices.bundled import bundled_map, normalised
from ledger.prices.mapterms import PICTURES, SPEECH


@dataclass(frozen=True, slots=True)
class Rule:
    """Disagreements of one cause: in a tier, of these models, with these kinds or sizes."""

    right: str
    why: str
    tier: str
    names: tuple[str, ...]  # beginnings
    kinds: tuple[str, ...] = ()  # any of them above zero
    above_tokens: int = 0

    def covers(self, name: str, tier: str, tokens: TokenCounts) -> bool:
        return (
            tier == self.tier
            and name.startswith(self.names)
            and (not self.kinds or any(getattr(tokens, kind) for kind in self.kinds))
            and prompt_tokens(tokens) > self.above_tokens
        )


RULES = (
    Rule(
        "ours and genai-prices",
        "an hour's cache write costs twice the input, and discounts stack; LiteLLM charges the"
        " five minutes' write (platform.claude.com/docs/en/about-claude/pricing)",
        "batch", ("anthropic/",), kinds=("cache_write_1h",),
    ),
    Rule(
        "ours and genai-prices",
        "batch is half the price above 200k, too; LiteLLM charges the batch price of short prompts"
        " (ai.google.dev/gemini-api/docs/pricing)",
        "batch", ("gemini/",), above_tokens=200_000,
    ),
    Rule(
        "undecided",
        "the provider's batch table has no price for cached input: ours and genai-prices keep the"
        " standard one, LiteLLM charges batch input, which is dearer"
        " (developers.openai.com/api/docs/pricing, read 2026-10-14)",
        "batch", ("openai/gpt-4.1", "openai/o3", "openai/o4-mini"), kinds=("cached",),
    ),
    Rule(
        "undecided",
        "the provider serves no prompts above 272k at priority, so no answer names this tier: ours"
        " and LiteLLM have the standard rates there, genai-prices those of short prompts"
        " (developers.openai.com/api/docs/pricing, read 2026-10-12)",
        "priority", ("openai/gpt-5.4", "openai/gpt-5.5"), above_tokens=272_000,
    ),
    Rule(
        "ours",
        "prompts above 272k cost twice the input and 1.5 times the output, in flex, too; LiteLLM"
        " takes standard rates there and genai-prices those of short prompts"
        " (developers.openai.com/api/docs/models/gpt-5.5-pro)",
        "flex", ("openai/gpt-5.5-pro",), above_tokens=272_000,
    ),
    Rule(
        "ours and LiteLLM",
        "as in flex; genai-prices has the rates of short prompts, because the batch table shows no"
        " others (developers.openai.com/api/docs/models/gpt-5.5-pro)",
        "batch", ("openai/gpt-5.5-pro",), above_tokens=272_000,
    ),
)  # fmt: skip

# Models that `genai-prices` lists at another price than LiteLLM's map, from which ours is read.
LISTS = {
    "anthropic/claude-sonnet-4-5": "ours: they keep the rates above 200k of the long-context beta,"
    " which ended on 2026-04-30 (platform.claude.com/docs/en/release-notes/overview)",
    "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0": "undecided: the map keeps rates"
    " above 200k, they have one rate; ours is the safe side",
    "deepseek/deepseek-v3.2": "undecided: 0.2288/0.3432 there, 0.28/0.40 in the map, neither with a"
    " source; ours is the safe side",
    "groq/openai/gpt-oss-safeguard-20b": "genai-prices: the map rounds the cached rate 0.0375 to"
    " 0.037 (groq.com/pricing)",
    "mistral/mistral-large-4": "genai-prices: the launch rates ended on 2026-10-20"
    " (docs.mistral.ai/inference/pricing)",
    "mistral/mistral-tiny": "undecided: the map has a cached rate, which they do not list",
    "moonshot/kimi-k3": "genai-prices: the provider prices an hour's cache write since 2026-10-15,"
    " the map does not (platform.kimi.ai/docs/pricing/chat-k3.md)",
    "openai/gpt-4o-mini-transcribe": "ours: 1.25 for sound, as for text; 3.00 there (developers."
    "openai.com/api/docs/models/gpt-4o-mini-transcribe)",
    "openai/gpt-4o-search-preview": "undecided: the map has gpt-4o's cached rate, which they do not"
    " list; ours is the cheap side",
    "openai/gpt-4o-transcribe": "ours: 2.50 for sound, as for text; 6.00 there (developers.openai."
    "com/api/docs/models/gpt-4o-transcribe)",
    "openai/gpt-5.6-cyber": "genai-prices: the provider has no long-context rates for this model,"
    " the map has its family's (developers.openai.com/api/docs/pricing); ours is the safe side",
    "xai/grok-code-fast-1": "ours: 1.00/2.00 in the map, from the provider's list (docs.x.ai/docs/"
    "models); 0.20/1.50 there, without a date",
}


def names_without_text() -> frozenset[str]:
    """Models whose answers are pictures or sound: requests of words alone have no price there."""
    rows = json.loads(bundled_map().text)
    return frozenset(
        normalised(key, str(row.get("litellm_provider")))
        for key, row in rows.items()
        if row.get("mode") in (PICTURES, SPEECH)
    )
