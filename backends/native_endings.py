"""Why an answer ended, in its provider's own words, where LiteLLM tells less.

LiteLLM calls every ending that it does not know `stop`, and drops the text that a target stopped
at. Both are read from the last bytes of the answer, as they came.
"""

import json
import re
from typing import Any, Final, NamedTuple

from backends.errors import UpstreamBroken

# Words that LiteLLM 1.106 tells as `stop`, from Anthropic's, Bedrock's, Cohere's, Gemini's and
# Zhipu's documents (2026-11), in chat's words.
_CUT: Final = frozenset({"model_context_window_exceeded", "ERROR_LIMIT"})
_WITHHELD: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE",
        "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL", "malformed_model_output",
        "malformed_tool_use",
    }
)  # fmt: skip
_BROKEN: Final = frozenset({"ERROR", "error", "network_error"})
# A quote within a text stands behind a backslash. What a model says comes before its ending.
_REASON: Final = re.compile(
    rb'(?<!\\)"(?:stop_?reason|finish_?reason)"\s*:\s*"([A-Za-z_]+)"', re.IGNORECASE
)
_SEQUENCE: Final = re.compile(rb'(?<!\\)"stop_sequence"\s*:\s*("(?:[^"\\]|\\.)*")')


class NativeEnding(NamedTuple):
    """`finish`: the finish reason in chat's words, where LiteLLM's is wrong; `stop`: the text."""

    finish: str | None = None
    stop: str | None = None


def read_ending(tail: bytes) -> NativeEnding:
    """Return how the answer with these last bytes ended.

    Raises `UpstreamBroken` where its provider says that it failed.
    """
    reasons = _REASON.findall(tail)
    word = reasons[-1].decode() if reasons else ""
    if word in _BROKEN:
        raise UpstreamBroken("the target ended its answer with an error")
    if word in _CUT:
        return NativeEnding("length")
    if word in _WITHHELD:
        return NativeEnding("content_filter")
    sequences = _SEQUENCE.findall(tail) if word == "stop_sequence" else []
    return NativeEnding(stop=_text(sequences[-1])) if sequences else NativeEnding()


def correct_choice(choice: dict[str, Any], ending: NativeEnding) -> None:
    """Tell the true ending in a choice that `stop` ends; `stop_reason` is vLLM's member for it."""
    if choice.get("finish_reason") == "stop":
        choice["finish_reason"] = ending.finish or "stop"
        if ending.stop is not None:
            choice["stop_reason"] = ending.stop


def _text(quoted: bytes) -> str | None:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return None
