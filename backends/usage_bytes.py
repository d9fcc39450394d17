"""Usage as it stands in an answer, encoded until someone asks for it.

`decode_usage` never fails: what stands there and is no object becomes `UNREADABLE_USAGE`, so that
its row can tell.
"""

from typing import Any

import msgspec

# Stands for usage that is there and is nothing that can be read: it says no count.
UNREADABLE_USAGE = {"unreadable": True}
# A place without usage, as servers write it.
_NONE = frozenset((b"null", b"[]", b"{}", b'""', b"false", b"0"))
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def usage_bytes(raw: msgspec.Raw) -> bytes | None:
    """The encoded usage; `None` without any. What is no object is kept for its row to tell."""
    value = bytes(raw)
    return None if value in _NONE else value


def decode_usage(raw: bytes | None) -> dict[str, Any] | None:
    """The usage object, `None` without one; `UNREADABLE_USAGE` for what is no object."""
    if raw is None:
        return None
    usage = decode_object(raw)
    return UNREADABLE_USAGE if usage is None else usage or None


def decode_object(raw: bytes) -> dict[str, Any] | None:
    """A JSON object, `None` for anything else."""
    try:
        return _decode_object(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _Counts(msgspec.Struct, gc=False):
    prompt_tokens: int
    completion_tokens: int


_decode_counts = msgspec.json.Decoder(_Counts).decode


def read_counts(raw: bytes) -> tuple[int, int] | None:
    """(prompt, output) tokens of a usage object that says both in whole numbers."""
    try:
        counts = _decode_counts(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return counts.prompt_tokens, counts.completion_tokens


def sum_running(running: dict[int, bytes], n: int) -> dict[str, Any]:
    """Outputs add up over choices; inputs over prompts, whose choices are numbered in blocks."""
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
