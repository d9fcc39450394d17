"""How honest providers write usage, and how it can be false.

An honest convention is a function of what was made; `CONVENTIONS` also lists which parts of it the
convention can tell, so that nothing else is made. A lie is a function of honest usage.
"""

from collections.abc import Callable
from typing import Any

from ledger.journals.records import TokenCounts

Usage = dict[str, Any]
FAR = 5_000_000  # tokens that no request of an adversary can have


def _totals(made: TokenCounts, output: int | None = None, **more: Any) -> Usage:
    prompt = made.whole_prompt
    return {
        "prompt_tokens": prompt,
        "completion_tokens": made.output if output is None else output,
        "total_tokens": prompt + made.output,
        **more,
    }


def openai(made: TokenCounts) -> Usage:
    return _totals(
        made,
        prompt_tokens_details={"cached_tokens": made.cached, "audio_tokens": made.audio_input},
        completion_tokens_details={
            "reasoning_tokens": made.reasoning,
            "audio_tokens": made.audio_output,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    )


def litellm(made: TokenCounts) -> Usage:
    details = {"cached_tokens": made.cached, "cache_creation_tokens": made.cache_write}
    return _totals(
        made,
        prompt_tokens_details=details,
        completion_tokens_details={"reasoning_tokens": made.reasoning},
        cache_read_input_tokens=made.cached,
        cache_creation_input_tokens=made.cache_write,
    )


def deepseek(made: TokenCounts) -> Usage:
    return _totals(
        made,
        prompt_cache_hit_tokens=made.cached,
        prompt_cache_miss_tokens=made.input,
        completion_tokens_details={"reasoning_tokens": made.reasoning},
    )


def dashscope(made: TokenCounts) -> Usage:
    details = {"cached_tokens": made.cached, "cache_creation_input_tokens": made.cache_write}
    return _totals(made, prompt_tokens_details={**details, "cache_type": "ephemeral"})


def groq(made: TokenCounts) -> Usage:
    times = {"queue_time": 0.037, "prompt_time": 0.0007, "completion_time": 0.46}
    return _totals(made, **times, total_time=0.4607)


def xai(made: TokenCounts) -> Usage:
    return _totals(
        made,
        made.output - made.reasoning,
        completion_tokens_details={"reasoning_tokens": made.reasoning},
        num_sources_used=0,
    )


def openrouter(made: TokenCounts) -> Usage:
    # Of credits that were given: what else it costs depends on a price.
    costs = {"cost": 0, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    return {**openai(made), **costs}


def anthropic(made: TokenCounts) -> Usage:
    return {
        "input_tokens": made.input,
        "cache_read_input_tokens": made.cached,
        "cache_creation_input_tokens": made.cache_write,
        "output_tokens": made.output,
    }


def one_api(made: TokenCounts) -> Usage:
    """Anthropic's counts under OpenAI's names, with all of them in the total."""
    return {
        "prompt_tokens": made.input,
        "completion_tokens": made.output,
        "total_tokens": made.whole_prompt + made.output,
        "cache_read_input_tokens": made.cached,
        "cache_creation_input_tokens": made.cache_write,
    }


def bedrock(made: TokenCounts) -> Usage:
    return {
        "inputTokens": made.input,
        "outputTokens": made.output,
        "totalTokens": made.whole_prompt + made.output,
        "cacheReadInputTokens": made.cached,
        "cacheWriteInputTokens": made.cache_write,
    }


# Name: the function, and which fields beside input and output it can tell.
CONVENTIONS: dict[str, tuple[Callable[[TokenCounts], Usage], frozenset[str]]] = {
    "openai": (openai, frozenset({"cached", "reasoning"})),
    "litellm": (litellm, frozenset({"cached", "cache_write", "reasoning"})),
    "deepseek": (deepseek, frozenset({"cached", "reasoning"})),
    "dashscope": (dashscope, frozenset({"cached", "cache_write"})),
    "kimi": (lambda made: _totals(made, cached_tokens=made.cached), frozenset({"cached"})),
    "groq": (groq, frozenset()),
    "xai": (xai, frozenset({"reasoning"})),
    "gemini": (lambda made: _totals(made, made.output - made.reasoning), frozenset({"reasoning"})),
    "sglang": (
        lambda made: _totals(made, reasoning_tokens=made.reasoning, prompt_tokens_details=None),
        frozenset({"reasoning"}),
    ),
    "vllm": (
        lambda made: _totals(made, prompt_tokens_details={"cached_tokens": made.cached}),
        frozenset({"cached"}),
    ),
    "anthropic": (anthropic, frozenset({"cached", "cache_write"})),
    "one-api": (one_api, frozenset({"cached", "cache_write"})),
    "bedrock": (bedrock, frozenset({"cached", "cache_write"})),
    "openrouter": (openrouter, frozenset({"cached", "reasoning"})),
}


def _more_prompt(usage: Usage, **details: int) -> Usage:
    more = {name: usage[name] + FAR for name in ("prompt_tokens", "total_tokens")}
    return {**usage, **more, "prompt_tokens_details": details or None}


def _more_output(usage: Usage, **details: int) -> Usage:
    more = {name: usage[name] + FAR for name in ("completion_tokens", "total_tokens")}
    return {**usage, **more, "completion_tokens_details": details or None}


LIES: dict[str, Callable[[Usage], Any]] = {
    "prompt": _more_prompt,
    "output": _more_output,
    "thinking": lambda usage: _more_output(usage, reasoning_tokens=FAR),
    "spoken": lambda usage: _more_output(usage, audio_tokens=FAR),
    "cached": lambda usage: _more_prompt(usage, cached_tokens=FAR),
    "written": lambda usage: _more_prompt(usage, cache_creation_tokens=FAR),
    "heard": lambda usage: _more_prompt(usage, audio_tokens=FAR),
    "total": lambda usage: {**usage, "total_tokens": 1},
    "negative": lambda usage: {**usage, "completion_tokens": -1},
    "words": lambda usage: {**usage, "prompt_tokens": "many"},
    "parts": lambda usage: {**usage, "completion_tokens_details": {"reasoning_tokens": FAR}},
    "listed": lambda usage: [usage],
    "text": lambda _: "many",
    "words-output": lambda usage: {**usage, "completion_tokens": "20"},
    "part": lambda usage: {**usage, "completion_tokens": 0.5},
    "cost": lambda usage: {**usage, "cost": 50_000.0},
    "unknown": lambda usage: {**usage, "agent_tokens": FAR},
}
