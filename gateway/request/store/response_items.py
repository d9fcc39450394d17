"""Items of stored responses: their ids, and the object that an id belongs to. Pure.

An answer's item has the answer's name in its id, so that references need no table: resp_7f has
msg_7f_0 and, in its input, msg_7f_i0. Items of conversations are objects of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "additional_tools": "at",
    "compaction": "cmp",
}
RESPONSE_PREFIX: Final = "resp_"
_ITEM_ID = re.compile(r"[a-z]+_([0-9a-f]{16,})_i?\d+")


def as_items(given: Any) -> list[Any]:
    """Return an `input` as a list of items; a text becomes a user message."""
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(given) if isinstance(given, list) else [given]


def name_items(items: Sequence[Any], name: str, *, keep_ids: bool = True) -> list[dict[str, Any]]:
    """Return the items of an input as they are listed, each with id, status and parts.

    `keep_ids`: an item that has an id keeps it.
    """
    return [
        _listed(item, f"{_prefix(item)}_{name}_i{index}", keep_ids=keep_ids)
        for index, item in enumerate(items)
        if isinstance(item, dict)
    ]


def response_of(item_id: str) -> str | None:
    """Return the id of the response that the item belongs to, if its id names one."""
    match = _ITEM_ID.fullmatch(item_id)
    return None if match is None else RESPONSE_PREFIX + match[1]


def list_input(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a stored response's own input, which is stored as it was sent.

    Naming them while storing would delay streams.
    """
    name = str(content["response"]["id"]).removeprefix(RESPONSE_PREFIX)
    return name_items(as_items(content["input"]), name, keep_ids=content["keeps_ids"])


def items_of(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a stored response's items: its own input, then its output."""
    yield from list_input(content)
    yield from content["response"].get("output") or ()


def referenced_ids(items: Sequence[Any]) -> list[str]:
    """Return the ids that `item_reference` items name, each once."""
    found = [item["id"] for item in items if is_reference(item)]
    return list(dict.fromkeys(found))


def is_reference(item: Any) -> bool:
    """Return whether the item refers to another; with an id alone, its type may be missing."""
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and item.keys() <= {"id", "type"})


def _prefix(item: Mapping[str, Any]) -> str:
    kind = item.get("type")
    return PREFIXES.get(kind if isinstance(kind, str) else "message", "item")


def _listed(item: Mapping[str, Any], item_id: str, *, keep_ids: bool) -> dict[str, Any]:
    given = item.get("id") if keep_ids else None
    kind = item.get("type") or "message"
    listed = {**item, "id": given if isinstance(given, str) and given else item_id, "type": kind}
    if kind == "message":
        listed.setdefault("status", "completed")
        if isinstance(item.get("content"), str):
            listed["content"] = [_text_part(item.get("role"), item["content"])]
    return listed


def _text_part(role: Any, text: str) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}
