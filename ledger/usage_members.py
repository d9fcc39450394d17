"""Members of a provider's `usage`, and which count each of them is: one table for all providers.

A path names a number inside `usage`; `[]` stands for the members of a list. The first path that is
there gives a count, except where several must agree (`AGREED`). What no path names is not read, and
`unread` tells it: a count that nobody knows may be one that somebody bills.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto


class UsageCount(Enum):
    """Which count a member is, and inside which other it stands."""

    PROMPT = auto()  # with or without cached tokens, by the provider's convention
    PROMPT_BESIDE = auto()  # read by the model beside the prompt's own count
    CITED = auto()  # read by the model beside the prompt, and beside the total
    COMPLETION = auto()
    TOTAL = auto()
    CACHED = auto()
    WRITTEN = auto()  # cache writes of any age
    WRITTEN_5M = auto()
    WRITTEN_1H = auto()
    CREATED = auto()  # of an engine's own cache: telemetry, which may overlap what was cached
    THOUGHT = auto()  # inside the completion, or in the total alone
    THOUGHT_ANYWHERE = auto()  # inside the completion where it fits there
    THOUGHT_BESIDE = auto()
    AUDIO_IN = auto()  # inside the prompt
    AUDIO_OUT = auto()  # inside the completion
    IMAGE_OUT = auto()  # inside the completion
    SEARCHES = auto()
    INCLUDED = auto()  # counted by another member, or never billed


AGREED = frozenset((UsageCount.CACHED, UsageCount.WRITTEN))
_IN = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_OUT = ("completion_tokens_details", "output_tokens_details", "output_token_details")
_AGES = (
    "cache_creation", "prompt_tokens_details.cache_creation_token_details",
    "prompt_tokens_details.cache_creation", "input_tokens_details.cache_creation_token_details",
)  # fmt: skip

MEMBERS: dict[str, UsageCount] = {
    # OpenAI, Azure, vLLM and all that speak like them; OpenAI's Responses, Anthropic.
    "prompt_tokens": UsageCount.PROMPT,
    "input_tokens": UsageCount.PROMPT,
    "completion_tokens": UsageCount.COMPLETION,
    "output_tokens": UsageCount.COMPLETION,
    "total_tokens": UsageCount.TOTAL,
    **{f"{details}.cached_tokens": UsageCount.CACHED for details in _IN},
    **{f"{details}.audio_tokens": UsageCount.AUDIO_IN for details in _IN},
    **{f"{details}.audio_tokens": UsageCount.AUDIO_OUT for details in _OUT},
    **{f"{details}.image_tokens": UsageCount.IMAGE_OUT for details in _OUT},
    **{f"{details}.reasoning_tokens": UsageCount.THOUGHT for details in _OUT},
    **{f"{details}.{part}_tokens": UsageCount.INCLUDED
       for details in _IN for part in ("text", "image", "video", "multimodal", "file")},
    **{f"{details}.{part}_tokens": UsageCount.INCLUDED
       for details in _OUT
       for part in ("text", "video", "accepted_prediction", "rejected_prediction")},
    # Anthropic, and translations of it.
    "cache_read_input_tokens": UsageCount.CACHED,
    "cache_creation_input_tokens": UsageCount.WRITTEN,
    **{f"{details}.{name}": UsageCount.WRITTEN for details in _IN
       for name in ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")},
    **{f"{ages}.ephemeral_5m_input_tokens": UsageCount.WRITTEN_5M for ages in _AGES},
    **{f"{ages}.ephemeral_1h_input_tokens": UsageCount.WRITTEN_1H for ages in _AGES},
    "server_tool_use.web_search_requests": UsageCount.SEARCHES,
    "server_tool_use.web_fetch_requests": UsageCount.INCLUDED,  # without a fee of its own
    # vLLM: blocks that this prompt filled.
    **{f"{details}.{name}": UsageCount.CREATED for details in _IN
       for name in ("created_cache_tokens", "created_cached_tokens")},
    # DeepSeek; Kimi, Together; Mistral.
    "prompt_cache_hit_tokens": UsageCount.CACHED,
    "prompt_cache_miss_tokens": UsageCount.INCLUDED,
    "cached_tokens": UsageCount.CACHED,
    "num_cached_tokens": UsageCount.CACHED,
    # SGLang counts it inside the completion, Perplexity's deep research beside it.
    "reasoning_tokens": UsageCount.THOUGHT_ANYWHERE,
    # Searches: Perplexity, xAI (sources), DashScope.
    "citation_tokens": UsageCount.CITED,  # pages that Perplexity's model read
    "num_search_queries": UsageCount.SEARCHES,
    "num_sources_used": UsageCount.SEARCHES,
    "plugins.search.count": UsageCount.SEARCHES,
    # Gemini's own API.
    "promptTokenCount": UsageCount.PROMPT,
    "toolUsePromptTokenCount": UsageCount.PROMPT_BESIDE,
    "candidatesTokenCount": UsageCount.COMPLETION,
    "thoughtsTokenCount": UsageCount.THOUGHT_BESIDE,
    "totalTokenCount": UsageCount.TOTAL,
    "cachedContentTokenCount": UsageCount.CACHED,
    **{f"{name}Details[].tokenCount": UsageCount.INCLUDED
       for name in ("promptTokens", "candidatesTokens", "cacheTokens", "toolUsePromptTokens")},
    # Bedrock's own API.
    "inputTokens": UsageCount.PROMPT,
    "outputTokens": UsageCount.COMPLETION,
    "totalTokens": UsageCount.TOTAL,
    "cacheReadInputTokens": UsageCount.CACHED,
    "cacheReadInputTokenCount": UsageCount.CACHED,
    "cacheWriteInputTokens": UsageCount.WRITTEN,
    "cacheWriteInputTokenCount": UsageCount.WRITTEN,
    # Cohere bills what it says that it bills; the rest is its own template.
    "billed_units.input_tokens": UsageCount.PROMPT,
    "billed_units.output_tokens": UsageCount.COMPLETION,
    "billed_units.search_units": UsageCount.SEARCHES,
    "search_units": UsageCount.SEARCHES,
    "tokens.input_tokens": UsageCount.INCLUDED,
    "tokens.output_tokens": UsageCount.INCLUDED,
    # Voyage's multimodal embeddings: parts of the total.
    "text_tokens": UsageCount.INCLUDED,
    "image_pixels": UsageCount.INCLUDED,
    "video_pixels": UsageCount.INCLUDED,
}  # fmt: skip
# Lists of counts by a member's word, as in Gemini's own API; the table names their totals.
BY_MODALITY: dict[tuple[str, str], UsageCount] = {
    ("promptTokensDetails", "AUDIO"): UsageCount.AUDIO_IN,
    ("candidatesTokensDetails", "AUDIO"): UsageCount.AUDIO_OUT,
    ("candidatesTokensDetails", "IMAGE"): UsageCount.IMAGE_OUT,
}
OBJECTS = frozenset(path.rpartition(".")[0] for path in MEMBERS) - {""}
# Times, money and rates, which providers tell beside counts.
_NO_COUNTS = ("time", "_s", "_ms", "_us", "seconds", "latency", "cost", "_usd", "_ticks",
              "per_second", "_rate")  # fmt: skip
_DEEPEST = 6


def leaves(
    usage: Mapping[str, object], path: str = "", depth: int = 0
) -> Iterator[tuple[str, object]]:
    """All members that are no objects, with their paths, in the order of the answer."""
    for name, value in usage.items():
        here = f"{path}{name}"
        yield from _within(here, value, depth)


def _within(here: str, value: object, depth: int) -> Iterator[tuple[str, object]]:
    if depth >= _DEEPEST:
        yield here, value
    elif isinstance(value, Mapping):
        yield from leaves(value, f"{here}.", depth + 1)
    elif isinstance(value, list):
        for member in value:
            yield from _within(f"{here}[]", member, depth + 1)
    else:
        yield here, value


def unread(usage: Mapping[str, object]) -> tuple[str, ...]:
    """Paths of numbers above zero that are neither read nor known to be part of another count."""
    found = {
        path: None
        for path, value in leaves(usage)
        if type(value) in (int, float) and value and not is_known(path)
    }
    return tuple(found)


def is_known(path: str) -> bool:
    """Whether the member is read, part of another, or by its name a time, money or a rate."""
    if path in MEMBERS:
        return True
    return any(part.endswith(_NO_COUNTS) or part.startswith("cost") for part in path.split("."))
