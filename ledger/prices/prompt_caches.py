"""The published rules of providers' prompt caches: minimum length, step and lifetime.

A rule states which prefixes may be cached. Whether a prefix is cached is learned from usage
(`router.cached_share`), starting from zero, unless the provider promises it.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

# Sources, read 2026-11-27 as stored copies of the vendors' pages:
# Anthropic: platform.claude.com/docs/en/build-with-claude/prompt-caching: the prefix before a mark
# is cached for 5 minutes, or an hour, since its last read; the minimum length depends on the model.
# For Sonnet 4.6 the page says 1,024; users saw 2,048 (anthropics/anthropic-sdk-python#1194).
# OpenAI: developers.openai.com/docs/guides/prompt-caching: from 1,024 tokens on, in steps of 128,
# for 5 to 10 minutes; a request may ask for 24 hours.
# Gemini: ai.google.dev/gemini-api/docs/caching: from 2,048 tokens on (2.5), 4,096 (3 and later),
# "no cost saving guarantee"; it states no time.
# DeepSeek: api-docs.deepseek.com/guides/kv_cache: in units of 64 tokens, for hours to days.
_MINUTES_S: Final = 300.0
_HOUR_S: Final = 3600.0


class PromptCacheRule(NamedTuple):
    """The minimum length of a cached prefix, the step in which it is read, and its lifetime.

    `marked`: only prefixes that a request marks are cached. `promised`: a cached prefix is always
    read; otherwise the share is learned from usage.
    """

    least_tokens: int = 1024
    step_tokens: int = 1
    ttl_s: float = _MINUTES_S
    marked: bool = False
    promised: bool = False

    def readable(self, tokens: int) -> int:
        """Return how many of a prefix's tokens can be read from the cache."""
        if tokens < self.least_tokens:
            return 0
        return tokens - tokens % self.step_tokens


_CLAUDE: Final = PromptCacheRule(marked=True, promised=True)
_RULES: Final = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r".*claude.*(opus-4[-.][5-9]|opus-5|haiku-4[-.]5).*", _CLAUDE._replace(least_tokens=4096)),
        (r".*claude.*(haiku|sonnet-4[-.]6).*", _CLAUDE._replace(least_tokens=2048)),
        (r".*claude.*", _CLAUDE),
        (r"(openai|azure|azure_ai)/.*", PromptCacheRule(step_tokens=128)),
        (r".*gemini-2\.5.*", PromptCacheRule(least_tokens=2048)),
        (r".*gemini.*", PromptCacheRule(least_tokens=4096)),
        (r".*deepseek.*", PromptCacheRule(least_tokens=64, step_tokens=64, ttl_s=_HOUR_S)),
        (r".*", PromptCacheRule()),
    )
)


@lru_cache(maxsize=4096)
def cache_rule_of(name: str) -> PromptCacheRule:
    """Return the rule of `provider/model`, or the most common rule if none is published."""
    return next(rule for pattern, rule in _RULES if pattern.fullmatch(name))
