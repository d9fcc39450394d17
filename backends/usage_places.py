"""Search for usage in an answer or a chunk, at all places that providers use.

`usage` of the whole comes first, then that of its choices, then any other object of counts:
`usageMetadata`, llama.cpp's `timings`, Bedrock's metrics, a message's own `usage`. Several places
may differ: one may lack reasoning, or cover one choice. The ledger decides the meaning of a count;
here only names tell whether a member counts at all, and whether it counts output. A request's
`metadata` may be echoed, so it is not read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from backends.usage_bytes import BESIDE, decode_usage, is_number, usage_bytes

_WORDS = ("choices", "message", "delta", BESIDE)
_BILLED = "billed_units"
TIER = "service_tier"
_DEEPEST = 4
_LONG = 4096  # bytes of a body
# Members in which providers report counts.
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
_TOTAL = re.compile(r"total|reasoning", re.IGNORECASE)
_ENDS = (b'okens"', b'ount"', b'_n"')  # of the names of counts
# Members with such names are times, money and rates.
_NO_COUNT = re.compile(
    r"time|duration|latency|cost|price|usd|ticks|_ms$|_us$|_s$|per_?sec|per_?token|rate$",
    re.IGNORECASE,
)


def usage_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage of a decoded answer or chunk, `None` without any.

    Differing usage at other places is under `BESIDE`.
    """
    own = _usage_of(value)
    inside = _usage_of_choices(value.get("choices"))
    others = _others_in({name: item for name, item in value.items() if name != "choices"})
    told = [*([] if own is None else [own]), *inside, *others]
    if not told:
        return None
    first, *more = told
    beside = [figure for figure in more if figure != first and _tells_counts(figure)]
    return {**first, BESIDE: [*first.get(BESIDE, ()), *beside]} if beside else first


def billed_usage_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage of an answer that is not relayed, with the service tier.

    A relay reads the tier itself; of an error or an unreadable answer the ledger gets only usage,
    and another tier has other prices.
    """
    return with_tier(usage_in(value), value.get(TIER))


def with_tier(usage: dict[str, Any] | None, tier: Any) -> dict[str, Any] | None:
    """Return usage with the tier, unless it has its own."""
    if usage is None or not isinstance(tier, str) or usage.get(TIER) is not None:
        return usage
    return {**usage, TIER: tier}


def may_tell_more(body: bytes, raw: bytes) -> bool:
    """Return whether an answer or chunk may have counts outside its usage, `raw`.

    Numbers of embeddings are not searched.
    """
    if len(body) > _LONG and b"]" not in raw:
        body = body[: body.find(b"[")] + body[body.rfind(b"]") :]
    return any(body.count(end) > raw.count(end) for end in _ENDS) or b"\\u00" in body


def _usage_of(value: Mapping[str, Any]) -> dict[str, Any] | None:
    raw = value.get("usage")
    return None if raw is None else decode_usage(usage_bytes(msgspec.Raw(msgspec.json.encode(raw))))


def _usage_of_choices(choices: Any) -> list[dict[str, Any]]:
    """Return the summed usage of choices, and further usage of single choices."""
    told, more = [], []
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        own = _usage_of(choice)
        figures = [*([] if own is None else [own]), *_others_in(choice)]
        if figures:
            told.append(figures[0])
            more += figures[1:]
    return [sum_choices(told), *more] if told else []


def _others_in(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return objects of counts at providers' known places, without `usage` itself."""
    return list(_objects_in({name: item for name, item in value.items() if name != "usage"}))


def _objects_in(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    left: list[tuple[Any, int, bool]] = [(value, 0, False)]
    while left:
        item, depth, is_held = left.pop(0)
        if isinstance(item, list):
            left += [(inner, depth, is_held) for inner in item]
        elif isinstance(item, dict):
            counts = {name: count for name, count in item.items() if _is_count(name, count)}
            if counts:  # beside words, as Ollama's, or an object of their own
                yield item if is_held else counts
            if depth < _DEEPEST and not (counts and is_held):
                # Cohere's `tokens` include its template; its billed units are the usage.
                names = [_BILLED] if isinstance(item.get(_BILLED), dict) else item
                left += [
                    (item[name], depth + 1, name not in _WORDS) for name in names if _may_hold(name)
                ]


def _tells_counts(usage: Mapping[str, Any]) -> bool:
    """Return whether usage counts input or output, and not only a total."""
    return any(
        _is_count(name, count) and _TOTAL.match(name) is None for name, count in usage.items()
    )


def _is_count(name: str, count: Any) -> bool:
    return _COUNT.search(name) is not None and is_number(count)


def _may_hold(name: str) -> bool:
    return name in _WORDS or _HOLDERS.search(name) is not None


def sum_choices(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of choices' usage: outputs add up, their prompt counts once."""
    whole = told[0]
    for usage in told[1:]:
        whole = _merged(whole, usage, output=False)
    if len(told) > 1:
        for total in [name for name in whole if name.lower().startswith("total")]:
            if (figures := _counts_of(told, total)) is not None:
                whole[total] = sum(figures) - _repeated_prompts(told, whole)
    return whole


def _repeated_prompts(told: list[dict[str, Any]], whole: Mapping[str, Any]) -> int:
    """Return the prompt tokens that the choices' totals count more than once."""
    for name in whole:
        is_prompt = _COUNT.search(name) and name.lower().startswith(("prompt", "input"))
        if is_prompt and (prompts := _counts_of(told, name)) is not None:
            return sum(prompts) - int(whole[name])
    return 0


def _counts_of(told: list[dict[str, Any]], name: str) -> list[int] | None:
    """Return the counts of one name, `None` unless each choice has one."""
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
        elif is_number(a) and is_number(b):
            merged[name] = a + b if counted else max(a, b)
    return merged


def counts_output(usage: Mapping[str, Any]) -> bool:
    """Return whether usage counts any output, or a total above its prompt."""
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
        elif isinstance(value, list) and depth < _DEEPEST:
            for item in value:
                if isinstance(item, dict):
                    yield from _output_counts(item, output=counted, depth=depth + 1)
        elif counted and is_number(value) and value > 0:
            yield True


def _most(usage: Mapping[str, Any], begins: tuple[str, ...]) -> float:
    return max(
        (
            count
            for name, count in usage.items()
            if name.lower().startswith(begins) and _is_count(name, count)
        ),
        default=0,
    )
