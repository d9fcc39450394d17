"""Conversion of Anthropic Messages usage to chat usage. No I/O.

Members without a chat name are kept, so that unread counts are noticed.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

_AGES: Final = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_COUNTS: Final = (
    "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens",
)  # fmt: skip
# Calls of the same model, at the same price, that the totals may or may not include.
_OWN_CALLS: Final = frozenset(("message", "compaction"))
_WRITTEN: Final = "cache_creation_input_tokens"
_THOUGHTS: Final = ("thinking_tokens",)
_OF_CALLS: Final = frozenset(("type", "model", *_COUNTS))
_OBJECTS: Final = ("cache_creation", "output_tokens_details", "server_tool_use")
# Member of chat usage with counts that the target also reported differently.
CONTRADICTING: Final = "contradicting"
# Text members next to counts, and their usual values; None: reported elsewhere.
_SERVICES: Final = {
    "service_tier": None, "inference_geo": ("global", "not_available"), "speed": ("standard",),
}  # fmt: skip


def chat_usage(usage: Mapping[str, Any], *, begun: bool = False) -> dict[str, Any]:
    """Return usage in chat's form. `begun`: as reported before any output.

    If a request took several model calls, their list has all that is billed; the totals omit calls
    that compacted the conversation. Of differing counts the larger one is used, and the differences
    are stored under `CONTRADICTING`. Calls of another model stay unread.
    """
    left = {name: value for name, value in usage.items() if value is not None}
    told = {name: left.pop(name) for name in _COUNTS if name in left}
    if not all(map(_is_count, told.values())):
        return dict(usage)  # it cannot be added up: the ledger flags it
    odd: dict[str, Any] = {}
    own, unread = _calls_of(left.pop("iterations", None), odd)
    counts = {name: _whole_count(name, told.get(name), own, odd) for name in _COUNTS}
    fresh, read, written, made = counts.values()
    ages = _ages_of(left, own, odd)
    if sum(ages.values()) > written:
        if written or _WRITTEN in told:
            odd[_WRITTEN] = written
        written = sum(ages.values())
    made = 0 if begun else made
    details: dict[str, Any] = {"cached_tokens": read}
    if written:
        details["cache_creation_tokens"] = written
        details["cache_creation_token_details"] = ages
    prompt = fresh + read + written
    words: dict[str, Any] = {
        "prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made,
    }  # fmt: skip
    odd |= {name: left.pop(name) for name in _OBJECTS if not _may_be_object(left.get(name))}
    thought = object_of(left.get("output_tokens_details")).get("thinking_tokens")
    if thought and not begun:
        words["completion_tokens_details"] = {"reasoning_tokens": thought}
    _keep_unknown(left, "output_tokens_details", _THOUGHTS)
    _drop_usual(left)
    if begun:
        left.pop("output_tokens_details", None)
    if unread:
        left["iterations"] = unread
    if odd:
        left[CONTRADICTING] = odd
    return {**words, "prompt_tokens_details": details, **left}


def _drop_usual(left: dict[str, Any]) -> None:
    for name, usual in _SERVICES.items():
        if usual is None or left.get(name) in usual:
            left.pop(name, None)


def _may_be_object(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _keep_unknown(fields: dict[str, Any], name: str, known: Collection[str]) -> None:
    """Keep only the members of one object in `fields` that are not `known`."""
    stated = object_of(fields.pop(name, None))
    if kept := {key: value for key, value in stated.items() if key not in known}:
        fields[name] = kept


def _calls_of(calls: Any, odd: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the model's own calls, and the unread part of the list."""
    if not calls:
        return [], []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        odd["iterations"] = calls
        return [], []
    own = [call for call in calls if word_of(call) in _OWN_CALLS]
    unread = [call for call in calls if word_of(call) not in _OWN_CALLS]
    for call in own:
        kept = {name: value for name, value in call.items() if name not in _OF_CALLS}
        for name, known in (("cache_creation", _AGES), ("output_tokens_details", _THOUGHTS)):
            _keep_unknown(kept, name, known)
            if not _may_be_object(call.get(name)):
                odd["iterations"] = calls
        if kept:
            unread.append(kept)
    return own, unread


def _whole_count(
    name: str, told: int | None, own: list[dict[str, Any]], odd: dict[str, Any]
) -> int:
    """Return one count over all calls; the total may or may not include separate calls."""
    figures = [call.get(name) for call in own]
    if any(not (figure is None or _is_count(figure)) for figure in figures):
        odd["iterations"] = own
    numbers = [_number(figure) for figure in figures]
    inside = [count for call, count in zip(own, numbers, strict=True) if not _is_beside(call)]
    listed, all_listed = sum(inside), sum(numbers)
    if told is None or told in (listed, all_listed):
        return all_listed
    silent = not inside or any(call.get(name) is None for call in own if not _is_beside(call))
    if silent and listed <= told:  # a list that does not tell it takes nothing away
        return told + all_listed - listed
    odd["iterations"] = own
    return max(told, all_listed)


def _ages_of(
    left: dict[str, Any], own: list[dict[str, Any]], odd: dict[str, Any]
) -> dict[str, int]:
    """Return cache writes by age, from totals or all calls; invalid ones go to `odd`."""
    stated = left.get("cache_creation")
    tops = object_of(stated)
    calls = [object_of(call.get("cache_creation")) for call in own]
    values = [each.get(age) for each in (tops, *calls) for age in _AGES]
    if not all(value is None or _is_count(value) for value in values):
        odd["ages"] = [tops, *calls]
    if _may_be_object(stated):
        _keep_unknown(left, "cache_creation", _AGES)
    ages = {
        age: max(_number(tops.get(age)), sum(_number(each.get(age)) for each in calls))
        for age in _AGES
    }
    return {age: count for age, count in ages.items() if count}


def _number(value: Any) -> int:
    return value if _is_count(value) else 0


def word_of(block: Mapping[str, Any]) -> str:
    """Return the type of a block, "" if it has none."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _is_beside(call: Mapping[str, Any]) -> bool:
    return word_of(call) != "message"


def object_of(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}
