"""Finds usage in an answer or a chunk, wherever its provider puts it.

`usage` of the whole stands first, then that of its choices, then any object of counts that stands
elsewhere: `usageMetadata`, llama.cpp's `timings`, Bedrock's metrics, a message's own `usage`.
Which count a member is, the ledger decides; here its name tells only whether it counts at all, and
whether it counts output. A request's `metadata` may be sent back, so nothing is read there.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from backends.usage_bytes import decode_usage, usage_bytes

_DEEPEST = 4
# Members that providers have counts in.
_HOLDERS = re.compile(r"usage|metrics|timings|stats|billed|x_groq|^meta$|^tokens$", re.IGNORECASE)
_COUNT = re.compile(
    r"^(?:prompt|input|output|completion|candidates|thoughts|generated|predicted|total|reasoning)"
    r".*(?:tokens?|count|_n|seconds)$|^(?:prompt_)?eval_count$|^search_units$",
    re.IGNORECASE,
)
_OUTPUT = re.compile(
    r"output|completion|candidates|thought|reasoning|generated|predicted|prediction|^eval_count$"
    r"|response|seconds$|^search_units$",
    re.IGNORECASE,
)
# Members with such names tell times, money and rates.
_NO_COUNT = re.compile(
    r"time|duration|latency|cost|price|usd|ticks|_ms$|_us$|_s$|per_?sec|per_?token|rate$",
    re.IGNORECASE,
)


def usage_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage of a decoded answer in one piece; `None` without any."""
    own = _usage_of(value)
    if own is not None:
        return own
    choices = value.get("choices")
    told = [
        usage
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and (usage := _usage_of(choice)) is not None
    ]
    return sum_choices(told) if told else find_usage(value)


def _usage_of(value: Mapping[str, Any]) -> dict[str, Any] | None:
    raw = value.get("usage")
    return None if raw is None else decode_usage(usage_bytes(msgspec.Raw(msgspec.json.encode(raw))))


def find_usage(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the first object of counts that stands where providers have them."""
    left: list[tuple[Any, int]] = [(value, 0)]
    while left:
        item, depth = left.pop(0)
        if isinstance(item, list):
            left += [(inner, depth) for inner in item]
        elif isinstance(item, dict):
            if any(_COUNT.search(name) and _is_number(count) for name, count in item.items()):
                return item
            if depth < _DEEPEST:
                left += [(inner, depth + 1) for name, inner in item.items() if _may_hold(name)]
    return None


def _may_hold(name: str) -> bool:
    return name in ("choices", "message", "delta") or _HOLDERS.search(name) is not None


def sum_choices(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up usage that each choice tells of itself: outputs add up, their prompt is one."""
    whole = told[0]
    for usage in told[1:]:
        whole = _merged(whole, usage, output=False)
    if len(told) > 1:
        for total in [name for name in whole if name.lower().startswith("total")]:
            if (figures := _counts_of(told, total)) is not None:
                whole[total] = sum(figures) - _repeated_prompts(told, whole)
    return whole


def _repeated_prompts(told: list[dict[str, Any]], whole: Mapping[str, Any]) -> int:
    """Tokens of prompts that the choices' totals have more often than once."""
    for name in whole:
        is_prompt = _COUNT.search(name) and name.lower().startswith(("prompt", "input"))
        if is_prompt and (prompts := _counts_of(told, name)) is not None:
            return sum(prompts) - int(whole[name])
    return 0


def _counts_of(told: list[dict[str, Any]], name: str) -> list[int] | None:
    """The counts of one name, where each choice tells one."""
    counts = [usage.get(name) for usage in told]
    whole = [count for count in counts if type(count) is int]
    return whole if len(whole) == len(counts) else None


def _merged(one: Mapping[str, Any], other: Mapping[str, Any], *, output: bool) -> dict[str, Any]:
    merged = {**one, **other}
    for name in one.keys() & other.keys():
        a, b = one[name], other[name]
        counted = output or _OUTPUT.search(name) is not None
        if isinstance(a, dict) and isinstance(b, dict):
            merged[name] = _merged(a, b, output=counted)
        elif _is_number(a) and _is_number(b):
            merged[name] = a + b if counted else max(a, b)
    return merged


def counts_output(usage: Mapping[str, Any]) -> bool:
    """Return whether usage counts anything that was made, or a total above its prompt."""
    if any(_output_counts(usage, output=False, depth=0)):
        return True
    totals = _most(usage, ("total",))
    return totals > _most(usage, ("prompt", "input"))


def _output_counts(usage: Mapping[str, Any], *, output: bool, depth: int) -> Iterator[bool]:
    for name, value in usage.items():
        if _NO_COUNT.search(name) and not name.lower().endswith(("tokens", "count")):
            continue
        counted = output or _OUTPUT.search(name) is not None
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _output_counts(value, output=counted, depth=depth + 1)
        elif counted and _is_number(value) and value > 0:
            yield True


def _most(usage: Mapping[str, Any], begins: tuple[str, ...]) -> float:
    return max(
        (
            count
            for name, count in usage.items()
            if name.lower().startswith(begins) and _COUNT.search(name) and _is_number(count)
        ),
        default=0,
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
