"""Rounds of one answer that Anthropic's usage lists outside its totals (`iterations`).

Turns of a tool loop are in the totals already. A compaction, which reads the conversation again and
writes a summary, is not, and is billed. A round of another model has an unknown price and stays for
`unread` to report. No I/O.
"""

from collections.abc import Mapping
from typing import Any, Final

_ROUNDS: Final = "iterations"
_INSIDE: Final = ("message",)  # no set: a type may be a list, which has no hash
_BESIDE: Final = ("compaction",)
_COUNTS: Final = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
)  # fmt: skip


def with_rounds(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return usage whose totals include all known rounds, which are then no longer listed.

    Rounds in another format than Anthropic's are left unchanged.
    """
    listed = usage.get(_ROUNDS)
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return usage
    beside = [item for item in listed if item.get("type") in _BESIDE]
    if not all(_is_count(item.get(name, 0)) for item in beside for name in _COUNTS):
        return usage
    found = {**usage, _ROUNDS: [item for item in listed if _is_unknown(item)]}
    for name in _COUNTS:
        more = sum(item.get(name) or 0 for item in beside)
        if more and _is_count(found.get(name)):
            found[name] = (found.get(name) or 0) + more
            if _is_count(found.get("total_tokens", "")):
                found["total_tokens"] = (found["total_tokens"] or 0) + more
    return found


def _is_unknown(item: Mapping[str, Any]) -> bool:
    return item.get("type") not in (*_INSIDE, *_BESIDE)


def _is_count(value: object) -> bool:
    return value is None or (type(value) is int and value >= 0)
