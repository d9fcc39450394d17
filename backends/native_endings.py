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
# How a stream says that it is over; a quote within a text is no such word, and a line none of its.
_OVER: Final = re.compile(
    rb'\ndata:\s*\[DONE\]|(?<!\\)"(?:finish_?reason|stop_?reason|done_reason|block_?reason)"\s*:\s*"[A-Za-z_]+"'
    rb'|(?<!\\)"done"\s*:\s*true',
    re.IGNORECASE,
)
_NOT_OVER: Final = frozenset({"not_finished"})  # watsonx's word
# Chat's words; what LiteLLM leaves as it came is a stop in a provider's own.
_FINISHES: Final = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_LENGTHS: Final = frozenset({"max_tokens", "time_limit", "token_limit"})
# Words that say more than chat's do, to clients that know them.
_TELLING: Final = frozenset(
    {"compaction", "model_context_window_exceeded", "pause_turn", "refusal"}
)
_DETAILS: Final = re.compile(rb'(?<!\\)"stop_details"\s*:\s*(\{[^{}]*\})')
_SEQUENCE: Final = re.compile(rb'(?<!\\)"stop_sequence"\s*:\s*("(?:[^"\\]|\\.)*")')


class NativeEnding(NamedTuple):
    """An ending in its provider's word. `stop`: the text that it stopped at, where it says so."""

    word: str = ""
    stop: str | None = None
    details: Any = None  # of a refusal

    @property
    def finish(self) -> str:
        """Return the finish reason in chat's words, of what LiteLLM calls `stop`."""
        return (
            "length"
            if self.word in _CUT
            else "content_filter"
            if self.word in _WITHHELD
            else "stop"
        )


def read_ending(tail: bytes) -> NativeEnding:
    """Return how the answer with these last bytes ended."""
    reasons = _REASON.findall(tail)
    word = reasons[-1].decode() if reasons else ""
    stops = _SEQUENCE.findall(tail) if word == "stop_sequence" else []
    details = _DETAILS.findall(tail) if word == "refusal" else []
    return NativeEnding(
        word, _json(stops[-1]) if stops else None, _json(details[-1]) if details else None
    )


def is_over(part: bytes) -> bool:
    """Return whether a provider says in a part of its stream that it is over.

    LiteLLM says so of any that ends.
    """
    return _OVER.search(part) is not None and read_ending(part).word not in _NOT_OVER


def tell_ending(choice: dict[str, Any], tail: bytes) -> None:
    """Tell in a choice that has ended how its provider says that it did.

    `stop_reason` is vLLM's member for the text that ended it, `native_finish_reason` OpenRouter's
    for the provider's word. Raises `UpstreamBroken` where its provider says that it failed.
    """
    if choice.get("finish_reason") is None:
        return
    ending = read_ending(tail)
    if choice["finish_reason"] not in _FINISHES:
        choice["finish_reason"] = "length" if choice["finish_reason"] in _LENGTHS else "stop"
    if choice["finish_reason"] == "stop" and (choice.get("message") or {}).get("tool_calls"):
        choice["finish_reason"] = "tool_calls"
    elif choice["finish_reason"] == "stop":
        if ending.word in _BROKEN:
            raise UpstreamBroken("the target ended its answer with an error")
        choice["finish_reason"] = ending.finish
        if ending.stop is not None:
            choice["stop_reason"] = ending.stop
    if ending.word in _TELLING:
        choice["native_finish_reason"] = ending.word
        if ending.details is not None:
            choice["stop_details"] = ending.details


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
