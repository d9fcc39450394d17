"""Usage in an answer, kept encoded until it is needed.

`decode_usage` never fails: a value that is not an object becomes `UNREADABLE_USAGE`, so that the
attempt's row shows it. JSON may repeat a name, of which decoders keep the last; earlier values are
kept under `BESIDE`.
"""

import json
from typing import Any, Final

import msgspec

# Member of usage with differing usage at other places of the answer.
BESIDE: Final = "told_beside"

# Represents usage that exists but cannot be read: it has no count.
UNREADABLE_USAGE = {"unreadable": True}
# Values of a missing usage, as servers write them.
_NONE = frozenset((b"null", b"[]", b"{}", b'""', b"false", b"0"))
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def usage_bytes(raw: msgspec.Raw) -> bytes | None:
    """Return the encoded usage, `None` without any; a value that is not an object is kept."""
    value = bytes(raw)
    return None if value in _NONE else value


def decode_usage(raw: bytes | None) -> dict[str, Any] | None:
    """Return the usage object, `None` without one; `UNREADABLE_USAGE` for another value."""
    if raw is None:
        return None
    usage = decode_told(raw)
    return UNREADABLE_USAGE if usage is None else usage or None


def decode_object(raw: bytes) -> dict[str, Any] | None:
    """Return a JSON object, `None` for anything else."""
    try:
        return _decode_object(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode_told(raw: bytes) -> dict[str, Any] | None:
    """Return a JSON object with earlier values of repeated names; `None` for anything else."""
    value = decode_object(raw)
    if value is None or _quotes(raw) <= _quotes(msgspec.json.encode(value)):
        return value
    try:
        return dict(json.loads(raw, object_pairs_hook=_with_repeated))
    except (ValueError, RecursionError):  # of numbers that this decoder does not take
        return value


def _quotes(raw: bytes) -> int:
    return raw.count(b'"') + raw.count(b"\\u0022")


def _with_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the last value of each name, with earlier ones added: the first, and maxima."""
    last = dict(pairs)
    if len(last) == len(pairs):
        return last
    first, most = dict(reversed(pairs)), dict(pairs)
    for name, value in pairs:
        if is_number(value) and is_number(most[name]):
            most[name] = max(most[name], value)
    beside = [figure for figure in (first, most) if figure != last]
    return {**last, BESIDE: beside} if beside else last


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


class _Counts(msgspec.Struct, gc=False):
    prompt_tokens: int
    completion_tokens: int


_decode_counts = msgspec.json.Decoder(_Counts).decode


def read_counts(raw: bytes) -> tuple[int, int] | None:
    """Return (prompt, output) tokens if usage has both as whole numbers, else `None`."""
    try:
        counts = _decode_counts(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return counts.prompt_tokens, counts.completion_tokens


def sum_running(running: dict[int, bytes], n: int) -> dict[str, Any]:
    """Return usage over choices: outputs add up, and prompts by blocks of `n` choices."""
    prompts: dict[int, int] = {}
    output = 0
    for index, raw in running.items():
        usage = decode_usage(raw) or {}
        prompts[index // n] = count_of(usage.get("prompt_tokens"))
        output += count_of(usage.get("completion_tokens"))
    total = sum(prompts.values())
    return {
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
    }


def count_of(value: Any) -> int:
    return value if isinstance(value, int) else 0
