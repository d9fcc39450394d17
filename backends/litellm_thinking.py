"""Reasoning efforts for Claude whose token budgets in LiteLLM are below the answer's cap.

Anthropic requires a budget below `max_tokens`; clients of OpenAI's API do not know budgets.
"""

from collections.abc import Mapping
from typing import Any, Final

EFFORT: Final = "reasoning_effort"
# Providers for which LiteLLM builds Claude's request body; other providers get the effort.
_WITH_BUDGETS: Final = frozenset(
    ("anthropic", "azure_ai", "bedrock", "databricks", "vertex_ai", "vertex_ai_beta")
)
_FALLING: Final = ("max", "xhigh", "high", "medium", "low", "minimal")


def fitting_effort(
    litellm: Any, prefix: str, body: Mapping[str, Any], caps: tuple[str, ...]
) -> str | None:
    """Return the requested effort, lowered for Claude until its budget is below the cap.

    Return None if no effort fits or none was requested. `prefix` is LiteLLM's name of the provider.
    `caps` are the request's members that may limit the answer's tokens.
    """
    asked = body.get(EFFORT)
    bounds = [body[name] for name in caps if isinstance(body.get(name), int)]
    is_claude = prefix in _WITH_BUDGETS and "claude" in str(body["model"]).lower()
    if not (is_claude and bounds and asked in _FALLING):
        return None if asked is None else str(asked)
    told = litellm.AnthropicConfig.map_reasoning_effort
    for effort in _FALLING[_FALLING.index(asked) :]:
        thinking = told(effort, model=str(body["model"]), custom_llm_provider=prefix) or {}
        if thinking.get("budget_tokens", 0) < min(bounds):  # some models have no budget
            return effort
    return None
