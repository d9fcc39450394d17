"""Why an answer ended, in its provider's own words: LiteLLM tells several of them as `stop`.

Read from the last bytes of the answer as they were on the wire. Only what chat's `finish_reason`
does not say is kept; it is told under the names that others use: OpenRouter's
`native_finish_reason`, vLLM's `stop_reason` for the text that ended the answer.
"""

import re
from typing import Any, Final, NamedTuple

import msgspec

# The answer was cut, whatever LiteLLM makes of it; Anthropic's, Bedrock's and Zhipu's words.
CUT: Final = frozenset(("model_context_window_exceeded", "context_window_exceeded"))
_STOPPED: Final = "stop_sequence"
# What says more than chat's words.
_TELLING: Final = CUT | {_STOPPED, "pause_turn", "refusal", "compaction"}
# A quote within a text is escaped, so these are members. Bedrock writes them otherwise.
_REASON: Final = re.compile(rb'"(?:stop_reason|stopReason|finish_reason)"\s*:\s*"([a-z_]{1,64})"')
_SEQUENCE: Final = re.compile(rb'"stop_sequence"\s*:\s*("(?:[^"\\]|\\.){1,1024}")')
_DETAILS: Final = re.compile(rb'"stop_details"\s*:\s*(\{[^{}]*\})')


class NativeEnding(NamedTuple):
    """`sequence`: the text that ended the answer. `details`: what is said of a refusal."""

    reason: str
    sequence: str | None = None
    details: dict[str, Any] | None = None

    def tell(self, choice: dict[str, Any]) -> None:
        """Put it into a choice of chat's answer."""
        choice["native_finish_reason"] = self.reason
        if self.reason in CUT:
            choice["finish_reason"] = "length"
        elif self.reason == "refusal":
            choice["finish_reason"] = "content_filter"
        if self.sequence is not None:
            choice["stop_reason"] = self.sequence
        if self.details is not None:
            choice["stop_details"] = self.details


def native_ending(tail: bytes) -> NativeEnding | None:
    """Return the ending that the last bytes of an answer tell; None where chat's words say it."""
    reasons = _REASON.findall(tail)
    if not reasons:
        return None
    reason = reasons[-1].decode()
    if reason not in _TELLING:
        return None
    sequence = _last(_SEQUENCE, tail) if reason == _STOPPED else None
    details = _last(_DETAILS, tail) if reason == "refusal" else None
    return NativeEnding(
        reason,
        sequence if isinstance(sequence, str) else None,
        details if isinstance(details, dict) else None,
    )


def _last(pattern: re.Pattern[bytes], tail: bytes) -> Any:
    found = pattern.findall(tail)
    try:
        return msgspec.json.decode(found[-1]) if found else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
