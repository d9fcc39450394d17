"""Replay of a stored answer as the events of a stream. Pure.

A client that lost its stream continues after the last number that it has, so a streamed background
answer is replayed in the same pieces, order and numbers.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.request.dialects.response_encoder import event

PICTURE: Final = "image_generation_call"
_CUT: Final = ("failed", "cancelled")
_TEXTS: Final = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
# The growing member and its event, by type of an item without parts.
_GROWING: Final = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}


def note_event(told: list[list[Any]], name: str, members: Mapping[str, Any]) -> None:
    """Record a sent event: its name, its item, and the length of each piece of a text."""
    place, delta = [name, members.get("output_index")], members.get("delta")
    if delta is None:
        told.append(place)
    elif told and told[-1][:2] == place:
        told[-1].append(len(delta))
    else:
        told.append([*place, len(delta)])


def replay_events(
    response: Mapping[str, Any],
    starting_after: int | None,
    told: Sequence[Sequence[Any]] = (),
) -> Iterator[bytes]:
    """Yield the answer's events whose numbers are beyond `starting_after`.

    `told`: what `note_event` has of them, but the last. That comes in any case to a client that
    has as many events as are known here, or more, of an answer that broke off: others were told.
    """
    first = 0 if starting_after is None else starting_after + 1
    events = list(_events(response))
    if told:
        events = [*_as_told(events, told), events[-1]]
    is_cut = not told and response["status"] in _CUT
    left = events[-1:] if first + is_cut > len(events) else events[first:]
    for number, (name, members) in enumerate(left, first):
        yield event(name, {"type": name, "sequence_number": number, **members})


def _as_told(
    events: Iterable[tuple[str, dict[str, Any]]], told: Iterable[Sequence[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events in the order and pieces in which they were sent."""
    known: dict[tuple[str, int | None], deque[dict[str, Any]]] = defaultdict(deque)
    for name, members in events:
        known[name, members.get("output_index")].append(members)
    for name, index, *sizes in told:
        left = known[name, index]
        members = left.popleft() if left else {"output_index": index}
        if not sizes:
            yield name, members
            continue
        text, start = members.get("delta", ""), 0
        for size in sizes:
            piece = {"delta": text[start : start + size]}
            # Log probabilities of all pieces are sent with the whole text.
            likely: dict[str, Any] = {"logprobs": []} if "logprobs" in members else {}
            yield name, {**members, **likely, **piece}
            start += size
        left.appendleft({**members, "delta": text[start:]})


def _events(response: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {
        **response, "status": "in_progress", "output": [], "usage": None, "completed_at": None,
        "error": None, "incomplete_details": None,
    }  # fmt: skip
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response.get("output") or ()):
        yield from _item_events(index, item)
    failure = response.get("error")
    if failure:
        yield "error", {"code": failure["code"], "message": failure["message"], "param": None}
    yield f"response.{response['status']}", {"response": response}


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {"item_id": item.get("id"), "output_index": index}
    member, word = _GROWING.get(str(item.get("type")), ("content", ""))
    empty = {**item, "status": "in_progress"}
    if member in item:
        empty[member] = "" if word else []
    is_picture = item.get("type") == PICTURE
    if is_picture:
        empty["result"] = None
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
    if is_picture:
        yield f"response.{PICTURE}.completed", place
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
