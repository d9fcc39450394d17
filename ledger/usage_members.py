"""Table of the members of providers' `usage` objects and their meaning, for all providers.

A path names a number inside `usage`; `[]` stands for the entries of a list. Paths of one count must
agree, except for parts that only one of them includes (`DIFFERENCES`). A path that is not listed is
not read; `unread` reports it, because an unknown count may be billed.
"""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum, auto


class UsageCount(IntEnum):
    """The meaning of a count. Comments name the count that includes it.

    An `IntEnum`, because each answer looks counts up by it and a plain `Enum` hashes in Python
    code.
    """

    PROMPT = auto()  # with or without cached tokens, by the provider's convention
    PROMPT_BESIDE = auto()  # input besides the prompt's own count
    PROMPT_ANYWHERE = auto()  # the same, or inside the prompt where the total has it there
    CITED = auto()  # input besides the prompt and besides the total
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


# Parts that one name of a count may include and another name may exclude.
DIFFERENCES: dict[UsageCount, tuple[UsageCount, ...]] = {
    UsageCount.PROMPT: (
        UsageCount.CACHED, UsageCount.WRITTEN, UsageCount.PROMPT_BESIDE, UsageCount.PROMPT_ANYWHERE,
    ),
    UsageCount.COMPLETION: (
        UsageCount.THOUGHT, UsageCount.THOUGHT_ANYWHERE, UsageCount.THOUGHT_BESIDE,
    ),
}  # fmt: skip
INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details", "output_token_details")
_AGES = (
    "cache_creation", "prompt_tokens_details.cache_creation_token_details",
    "prompt_tokens_details.cache_creation", "input_tokens_details.cache_creation_token_details",
)  # fmt: skip

MEMBERS: dict[str, UsageCount] = {
    # OpenAI, Azure, vLLM and compatible servers; OpenAI's Responses; Anthropic.
    "prompt_tokens": UsageCount.PROMPT,
    "input_tokens": UsageCount.PROMPT,
    "completion_tokens": UsageCount.COMPLETION,
    "output_tokens": UsageCount.COMPLETION,
    "total_tokens": UsageCount.TOTAL,
    **{f"{details}.cached_tokens": UsageCount.CACHED for details in INPUT_DETAILS},
    **{f"{details}.audio_tokens": UsageCount.AUDIO_IN for details in INPUT_DETAILS},
    **{f"{details}.audio_tokens": UsageCount.AUDIO_OUT for details in OUTPUT_DETAILS},
    **{f"{details}.image_tokens": UsageCount.IMAGE_OUT for details in OUTPUT_DETAILS},
    **{f"{details}.{name}_tokens": UsageCount.THOUGHT
       for details in OUTPUT_DETAILS for name in ("reasoning", "thinking")},
    **{f"{details}.{part}_tokens": UsageCount.INCLUDED
       for details in INPUT_DETAILS for part in ("text", "image", "video", "multimodal", "file")},
    **{f"{details}.{part}_tokens": UsageCount.INCLUDED
       for details in OUTPUT_DETAILS
       for part in ("text", "video", "accepted_prediction", "rejected_prediction")},
    # Anthropic, and translations of it.
    "cache_read_input_tokens": UsageCount.CACHED,
    "cache_creation_input_tokens": UsageCount.WRITTEN,
    **{f"{details}.{name}": UsageCount.WRITTEN for details in INPUT_DETAILS
       for name in ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")},
    **{f"{details}.{name}": UsageCount.CACHED for details in INPUT_DETAILS
       for name in ("cache_read_tokens", "cache_read_input_tokens")},
    **{f"{ages}.ephemeral_5m_input_tokens": UsageCount.WRITTEN_5M for ages in _AGES},
    **{f"{ages}.ephemeral_1h_input_tokens": UsageCount.WRITTEN_1H for ages in _AGES},
    "server_tool_use.web_search_requests": UsageCount.SEARCHES,
    "server_tool_use.web_fetch_requests": UsageCount.INCLUDED,  # without a fee of its own
    # LiteLLM's names for Gemini: tool input, which it counts in the prompt except for searches
    # (a subset), and searches.
    "prompt_tokens_details.tool_use_tokens": UsageCount.PROMPT_ANYWHERE,
    "prompt_tokens_details.web_search_requests": UsageCount.SEARCHES,
    # vLLM: cache blocks that this prompt filled.
    **{f"{details}.{name}": UsageCount.CREATED for details in INPUT_DETAILS
       for name in ("created_cache_tokens", "created_cached_tokens")},
    # DeepSeek; Kimi, Together; Mistral.
    "prompt_cache_hit_tokens": UsageCount.CACHED,
    "prompt_cache_miss_tokens": UsageCount.INCLUDED,
    "cached_tokens": UsageCount.CACHED,
    "num_cached_tokens": UsageCount.CACHED,
    "connector_tokens": UsageCount.PROMPT_BESIDE,  # input from Mistral's tools
    "connectors.web_search": UsageCount.SEARCHES,
    # SGLang counts it inside the completion, Perplexity's deep research outside: there it comes
    # with cited tokens, has a separate price and is in no total.
    "reasoning_tokens": UsageCount.THOUGHT_ANYWHERE,
    "audio_tokens": UsageCount.AUDIO_IN,  # Mistral's, of a transcription
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
    "cacheDetails[].inputTokens": UsageCount.INCLUDED,
    # Call details of Bedrock, timings of llama.cpp, durations of Ollama.
    "inputTokenCount": UsageCount.PROMPT,
    "outputTokenCount": UsageCount.COMPLETION,
    "prompt_n": UsageCount.PROMPT,
    "cache_n": UsageCount.PROMPT_BESIDE,
    "predicted_n": UsageCount.COMPLETION,
    "draft_n": UsageCount.INCLUDED,
    "draft_n_accepted": UsageCount.INCLUDED,
    "prompt_eval_count": UsageCount.PROMPT,
    "eval_count": UsageCount.COMPLETION,
    # Cohere bills `billed_units`; other counts include its own template.
    "billed_units.input_tokens": UsageCount.PROMPT,
    "billed_units.output_tokens": UsageCount.COMPLETION,
    "billed_units.search_units": UsageCount.SEARCHES,
    "search_units": UsageCount.SEARCHES,
    "tokens.input_tokens": UsageCount.INCLUDED,
    "tokens.output_tokens": UsageCount.INCLUDED,
    # Voyage's multimodal embeddings: parts of the total.
    "text_tokens": UsageCount.INCLUDED,
    # Units of request kinds that are charged by them, read by `unit_usage`.
    "generated_images": UsageCount.INCLUDED,
    "characters": UsageCount.INCLUDED,
    "input_characters": UsageCount.INCLUDED,
    "billed_characters": UsageCount.INCLUDED,
    "image_pixels": UsageCount.INCLUDED,
    "video_pixels": UsageCount.INCLUDED,
}  # fmt: skip
# Lists of counts by a member's word, as in the own APIs of Gemini (a modality) and Bedrock (how
# long written tokens are kept); the table names their totals. A path, its member and word, its
# count's name.
BY_WORD: dict[tuple[str, str, str, str], UsageCount] = {
    ("promptTokensDetails", "modality", "AUDIO", "tokenCount"): UsageCount.AUDIO_IN,
    ("candidatesTokensDetails", "modality", "AUDIO", "tokenCount"): UsageCount.AUDIO_OUT,
    ("candidatesTokensDetails", "modality", "IMAGE", "tokenCount"): UsageCount.IMAGE_OUT,
    ("cacheDetails", "ttl", "5m", "inputTokens"): UsageCount.WRITTEN_5M,
    ("cacheDetails", "ttl", "1h", "inputTokens"): UsageCount.WRITTEN_1H,
}
OBJECTS = frozenset(path.rpartition(".")[0] for path in MEMBERS) - {""}
# Seconds of audio, which `ledger.usage` reads separately: they may be fractions.
SOUND_SECONDS = ("seconds", "prompt_audio_seconds")
# Times, money and rates that providers report with counts, recognised by a name's last word.
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_NO_COUNTS = frozenset((
    "cost", "costs", "discount", "duration", "latency", "ms", "ns", "price", "rate", "ticks",
    "time", "us", "usd",
))  # fmt: skip
_SECONDS = frozenset(("s", "sec", "second", "seconds"))
_TIMES = frozenset((
    "decode", "duration", "elapsed", "generation", "inference", "latency", "per", "prefill",
    "processing", "queue", "time", "total", "ttft", "wait",
))  # fmt: skip
_COUNTED = frozenset(("count", "images", "pages", "requests", "tokens", "units"))
_COSTS = frozenset(("cost", "costs", "cost_details"))
_DEEPEST = 6
_LONG = 40  # characters of a text that may be a number


def leaves(
    usage: Mapping[str, object], path: str = "", depth: int = 0
) -> Iterator[tuple[str, object]]:
    """Yield all members that are not objects, with their paths, in the order of the answer."""
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
    """Return paths of nonzero numbers that are neither read nor known parts of other counts."""
    found = {
        path: None for path, value in leaves(usage) if is_counted(value) and not is_known(path)
    }
    return tuple(found)


def is_counted(value: object) -> bool:
    """Return whether a value is a nonzero number or numeric text, or a nonempty nested value."""
    if type(value) is str:
        return _is_number(value)
    return type(value) in (int, float, dict, list) and bool(value)


def _is_number(text: str) -> bool:
    """Return whether a text is a nonzero number in any notation."""
    if len(text) > _LONG:
        return text.isdecimal()
    try:
        return float(text) != 0
    except ValueError:
        return False


def is_known(path: str) -> bool:
    """Return whether a member is read, part of another, or named as a time, money or rate."""
    if path in MEMBERS or path in SOUND_SECONDS:
        return True
    outer, _, leaf = path.replace("[]", "").rpartition(".")
    words = [word.lower() for word in _WORD.findall(leaf)]
    if not words or words[-1] == "id":
        return bool(words)
    if words[-1] in _SECONDS:
        return not _TIMES.isdisjoint(words)
    if words[0] == "time" or ("per" in words and not _SECONDS.isdisjoint(words)):
        return words[-1] not in _COUNTED
    return words[-1] in _NO_COUNTS or (outer in _COSTS and words[-1] not in _COUNTED)
