"""A stored answer told once more as the events of a stream. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.request.dialects.response_encoder import event

_TEXTS: Final = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
# The member that grows, and the event that tells it, by the type of an item without parts.
_GROWING: Final = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}


def replay_events(response: Mapping[str, Any], starting_after: int | None) -> Iterator[bytes]:
    """Yield the answer's events whose numbers are beyond `starting_after`."""
    first = 0 if starting_after is None else starting_after + 1
    for number, (name, members) in enumerate(_events(response)):
        if number >= first:
            yield event(name, {"type": name, "sequence_number": number, **members})


def _events(response: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {
        **response, "status": "in_progress", "output": [], "usage": None, "completed_at": None,
        "error": None, "incomplete_details": None,
    }  # fmt: skip
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response.get("output") or ()):
        yield from _item_events(index, item)
    yield f"response.{response['status']}", {"response": response}


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {"item_id": item.get("id"), "output_index": index}
    member, word = _GROWING.get(str(item.get("type")), ("content", ""))
    empty = {**item, "status": "in_progress"}
    if member in item:
        empty[member] = "" if word else []
    yield "response.output_item.added", {"output_index": index, "item": empty}
    if word:
        text = item.get(member, "")
        yield f"response.{word}.delta", {**place, "delta": text}
        done = {**place, member: text}
        if member == "arguments":
            done["name"] = item.get("name")
        yield f"response.{word}.done", done
    else:
        for number, part in enumerate(item.get("content") or ()):
            yield from _part_events({**place, "content_index": number}, part)
    yield "response.output_item.done", {"output_index": index, "item": item}


def _part_events(
    place: Mapping[str, Any], part: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = str(part.get("type"))
    member = _TEXTS.get(kind, "text")
    told = part.get("logprobs") or []
    likely: dict[str, Any] = {"logprobs": told} if kind == "output_text" else {}
    cited = part.get("annotations") or ()
    empty = {**part, member: ""} | {
        name: [] for name in ("annotations", "logprobs") if part.get(name)
    }
    yield "response.content_part.added", {**place, "part": empty}
    yield f"response.{kind}.delta", {**place, "delta": part.get(member, ""), **likely}
    for number, annotation in enumerate(cited):
        told = {"annotation_index": number, "annotation": annotation}
        yield f"response.{kind}.annotation.added", {**place, **told}
    yield f"response.{kind}.done", {**place, member: part.get(member, ""), **likely}
    yield "response.content_part.done", {**place, "part": part}
