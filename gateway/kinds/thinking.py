"""Detection of requests that ask their model to think, by providers' members."""

import re
from typing import Final

from gateway.http.body import Members

# Members of OpenAI, OpenRouter, Anthropic, DashScope, Ollama and Google.
_MEMBERS: Final = frozenset((
    "reasoning_effort", "reasoning", "thinking", "thinking_budget", "enable_thinking", "think",
    "thinking_config", "thinkingConfig",
))  # fmt: skip
# Members for showing thoughts, which the model makes in any case: of OpenRouter and vLLM, Groq
# and Cerebras, MiniMax, SGLang.
_SHOWN: Final = frozenset((
    "include_reasoning", "reasoning_format", "reasoning_split", "separate_reasoning",
    "stream_reasoning",
))  # fmt: skip
_WRAPPERS: Final = frozenset(("chat_template_kwargs", "extra_body"))  # of vendors' own members
_READ: Final = _MEMBERS | _SHOWN | _WRAPPERS
_WORD: Final = re.compile(rb"think|reason", re.IGNORECASE)
_NO: Final = re.compile(rb'null|false|0|"(?:none|off|no|disabled|false)"')
_SWITCHED_OFF: Final = re.compile(
    rb'"(?:type|effort|mode)"\s*:\s*"(?:disabled|none|off)"'
    rb'|"(?:enabled|enable_thinking|thinking|think)"\s*:\s*false'
    rb'|"(?:budget_tokens|max_tokens|thinking_budget|thinkingBudget)"\s*:\s*0\b'
)


def asks_to_think(members: Members) -> bool:
    """Return whether a member asks for thoughts or hides them; disabling them does not count."""
    if _READ.isdisjoint(members):
        return False
    for name, value in members.items():
        if name in _SHOWN and bytes(value).strip() != b"null":
            return True
        if name in _MEMBERS or (name in _WRAPPERS and _WORD.search(bytes(value))):
            text = bytes(value).strip()
            if not (_NO.fullmatch(text) or _SWITCHED_OFF.search(text)):
                return True
    return False
