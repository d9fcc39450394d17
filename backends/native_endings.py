"""Finish reasons of providers, of which LiteLLM loses a part.

LiteLLM reports unknown reasons as `stop`, and drops the matched stop text. Both are read from the
last original bytes of the answer.
"""

import json
import re
from typing import Any, Final, NamedTuple

from backends.errors import UpstreamBroken

# Reasons that LiteLLM 1.106 maps to `stop`, from Anthropic's, Bedrock's, Cohere's, Gemini's and
# Zhipu's documentation (2026-11), with chat's finish reason.
_CUT: Final = frozenset({"model_context_window_exceeded", "ERROR_LIMIT"})
_WITHHELD: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE",
        "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL", "malformed_model_output",
        "malformed_tool_use",
    }
)  # fmt: skip
_BROKEN: Final = frozenset({"ERROR", "error", "network_error"})
# A quote within a text follows a backslash. The finish reason follows the model's output.
_REASON: Final = re.compile(
    rb'(?<!\\)"(?:stop_?reason|finish_?reason)"\s*:\s*"([A-Za-z_]+)"', re.IGNORECASE
)
# End marks of streams; quotes and line breaks inside texts are escaped and do not match.
_OVER: Final = re.compile(
    rb'\ndata:\s*\[DONE\]|(?<!\\)"(?:finish_?reason|stop_?reason|done_reason|block_?reason)"\s*:\s*"[A-Za-z_]+"'
    rb'|(?<!\\)"done"\s*:\s*true',
    re.IGNORECASE,
)
_NOT_OVER: Final = frozenset({"not_finished"})  # watsonx's word
# Chat's finish reasons; others that LiteLLM passes through are stops in a provider's words.
_FINISHES: Final = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_LENGTHS: Final = frozenset({"max_tokens", "time_limit", "token_limit"})
# Reasons that are more specific than chat's, for clients that know them.
_TELLING: Final = frozenset(
    {"compaction", "model_context_window_exceeded", "pause_turn", "refusal"}
)
_DETAILS: Final = re.compile(rb'(?<!\\)"stop_details"\s*:\s*(\{[^{}]*\})')
_SEQUENCE: Final = re.compile(rb'(?<!\\)"stop_sequence"\s*:\s*("(?:[^"\\]|\\.)*")')


class NativeEnding(NamedTuple):
    """A provider's finish reason. `stop`: the matched stop text, if reported."""

    word: str = ""
    stop: str | None = None
    details: Any = None  # of a refusal

    @property
    def finish(self) -> str:
        """Return the chat finish reason for what LiteLLM calls `stop`."""
        return (
            "length"
            if self.word in _CUT
            else "content_filter"
            if self.word in _WITHHELD
            else "stop"
        )


def read_ending(tail: bytes) -> NativeEnding:
    """Return the finish reason of the answer with these last bytes."""
    reasons = _REASON.findall(tail)
    word = reasons[-1].decode() if reasons else ""
    stops = _SEQUENCE.findall(tail) if word == "stop_sequence" else []
    details = _DETAILS.findall(tail) if word == "refusal" else []
    return NativeEnding(
        word, _json(stops[-1]) if stops else None, _json(details[-1]) if details else None
    )


def is_over(part: bytes) -> bool:
    """Return whether a part of a stream has the provider's end mark.

    LiteLLM reports an end for any stream that stops.
    """
    return _OVER.search(part) is not None and read_ending(part).word not in _NOT_OVER


def tell_ending(choice: dict[str, Any], tail: bytes) -> None:
    """Add the provider's finish reason to a finished choice.

    `stop_reason` is vLLM's member for the matched stop text, `native_finish_reason` OpenRouter's
    for the provider's reason. Raises `UpstreamBroken` if the provider reports a failure.
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
