"""Answers of Anthropic's Messages as chat's: whole ones, and streams event by event. Pure.

Chat is what relays, books and clients of chat read. With `native` each event carries the one that
the target sent, for a client that speaks Messages itself (`backends.native_events`): then blocks
that chat has no form for pass too, and input of tools that run at the target counts as output.
Usage keeps every member that chat has no name for: what nobody reads must be seen to be unread.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from backends.native_events import MEMBER, native_comment
from backends.sse import EventSplitter, data_spans, join_data

DONE: Final = b"data: [DONE]\n\n"
FINISHES: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause_turn": "stop",
    "compaction": "stop",
}
# Endings that chat's words do not tell.
_TELLING: Final = frozenset(
    ("compaction", "model_context_window_exceeded", "pause_turn", "refusal")
)
_TIERS: Final = {"standard": "default"}
_AGES: Final = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_COUNTS: Final = (
    "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens",
)  # fmt: skip
_CALLS: Final = frozenset(("server_tool_use", "mcp_tool_use"))
# Changes of a block that are no words of the model, or none that are relayed to somebody.
_NO_WORDS: Final = frozenset(("citations_delta", "input_json_delta", "signature_delta"))
# Calls of the same model, at the same price, that the totals may or may not count.
_OWN_CALLS: Final = frozenset(("message", "compaction"))
_WRITTEN: Final = "cache_creation_input_tokens"
_OUTPUTS: Final = frozenset(("output_tokens", "iterations"))
_THOUGHTS: Final = ("thinking_tokens",)
_OF_CALLS: Final = frozenset(("type", "model", *_COUNTS))
_OBJECTS: Final = ("cache_creation", "output_tokens_details", "server_tool_use")
# Of usage in chat's words: what the target said otherwise too.
CONTRADICTING: Final = "contradicting"
# Words beside the counts, and what of them is charged as usual; None: it is told elsewhere.
_SERVICES: Final = {
    "service_tier": None, "inference_geo": ("global", "not_available"), "speed": ("standard",),
}  # fmt: skip


def chat_usage(usage: Mapping[str, Any], *, begun: bool = False) -> dict[str, Any]:
    """Return usage in chat's words. `begun`: as it was told before anything was made.

    Where a request took several calls of the model, their list has all that is billed; the totals
    leave out those that made a conversation short. Of figures that differ the larger counts, and
    what differs, or is no such member, stands under `CONTRADICTING`. What another model did stays,
    unread.
    """
    left = {name: value for name, value in usage.items() if value is not None}
    told = {name: left.pop(name) for name in _COUNTS if name in left}
    if not all(map(_is_count, told.values())):
        return dict(usage)  # nobody can add it up: the books say so
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
    thought = _object(left.get("output_tokens_details")).get("thinking_tokens")
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
    """Leave of one object in `fields` only the members that are not `known`."""
    stated = _object(fields.pop(name, None))
    if kept := {key: value for key, value in stated.items() if key not in known}:
        fields[name] = kept


def _calls_of(calls: Any, odd: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the model's own calls, and of the list what nobody here reads."""
    if not calls:
        return [], []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        odd["iterations"] = calls
        return [], []
    own = [call for call in calls if _word(call) in _OWN_CALLS]
    unread = [call for call in calls if _word(call) not in _OWN_CALLS]
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
    """Return one count of all calls; the total may or may not have those beside it."""
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
    """Return cache writes by age, of the totals or of all calls; what is no count is `odd`."""
    stated = left.get("cache_creation")
    tops = _object(stated)
    calls = [_object(call.get("cache_creation")) for call in own]
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


def _word(block: Mapping[str, Any]) -> str:
    """Return what kind a member says that it is."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _is_beside(call: Mapping[str, Any]) -> bool:
    return _word(call) != "message"


def chat_answer(body: bytes, *, created_s: int, native: bool) -> bytes:
    """Return a whole answer as a chat completion; what is no message stays as it is."""
    try:
        message = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return body
    said = _message(message["content"], native=native)
    choice = {"index": 0, "message": said, **_ending(message)}
    usage = message.get("usage")
    answer: dict[str, Any] = {
        "id": message.get("id"),
        "object": "chat.completion",
        "created": created_s,
        "model": message.get("model"),
        "choices": [choice],
    }
    if isinstance(usage, dict):
        answer |= {"usage": chat_usage(usage), **_tier(usage)}
    if native:
        answer[MEMBER] = msgspec.Raw(body)
    return msgspec.json.encode(answer)


def _message(content: list[Any], *, native: bool) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in map(_object, content):
        kind = _word(block)
        if kind in ("text", "compaction"):
            texts.append(str(block.get("text") or block.get("content") or ""))
        elif kind == "thinking":
            thoughts.append(str(block.get("thinking") or ""))
        elif kind == "tool_use" or (native and kind in _CALLS):
            arguments = msgspec.json.encode(block.get("input") or {}).decode()
            calls.append(_call(len(calls), block, arguments))
    said: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if thoughts:
        said["reasoning_content"] = "".join(thoughts)
    if calls:
        said["tool_calls"] = calls
    return said


def _call(index: int, block: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    function = {"name": block.get("name"), "arguments": arguments}
    return {"index": index, "id": block.get("id"), "type": "function", "function": function}


def _ending(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a choice ends, of a message or of the change that ends a stream."""
    word = told.get("stop_reason")
    ending: dict[str, Any] = {"finish_reason": FINISHES.get(str(word), "stop")}
    if word == "stop_sequence" and isinstance(told.get("stop_sequence"), str):
        ending["stop_reason"] = told["stop_sequence"]  # as vLLM names the text
    if isinstance(word, str) and word in _TELLING:
        ending["native_finish_reason"] = word
        if told.get("stop_details"):
            ending["stop_details"] = told["stop_details"]
    return ending


def _tier(usage: Mapping[str, Any]) -> dict[str, str]:
    tier = usage.get("service_tier")
    return {"service_tier": _TIERS.get(tier, tier)} if isinstance(tier, str) else {}


class MessagesStream:
    """Takes bytes of Messages' event stream, returns those of chat's.

    `ended`: the target's last word has come. An end before it is broken, however much was said.
    """

    def __init__(self, *, created_s: int, native: bool) -> None:
        self.ended = False
        self._native = native
        self._splitter = EventSplitter()
        self._frame: dict[str, Any] = {
            "id": None, "object": "chat.completion.chunk", "created": created_s, "model": None,
        }  # fmt: skip
        self._usage: dict[str, Any] = {}
        self._counted = False  # what was made, by an end
        self._calls: dict[int, int] = {}  # a block's index: the call's

    def feed(self, data: bytes) -> bytes:
        return b"".join(map(self._event, self._splitter.feed(data)))

    @property
    def rest(self) -> bytes:
        """An event whose empty line never came."""
        return bytes(self._splitter.rest)

    def _event(self, event: bytes) -> bytes:
        spans = data_spans(event)
        if not spans:
            return event  # a comment, or no event at all: the relay judges it
        payload = join_data(event, spans)
        try:
            told = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return event
        kind = told.get("type") if isinstance(told, dict) else None
        if kind == "error" or not isinstance(kind, str):
            return event
        chunks = self._chunks(kind, told)
        if not self._native:
            return b": ping\n\n" if kind == "ping" else chunks
        return native_comment(payload) + (chunks or b"\n")

    def _chunks(self, kind: str, told: dict[str, Any]) -> bytes:
        if kind == "content_block_delta":
            delta = self._delta(told)
            return b"" if delta is None else self._chunk(delta)
        if kind == "content_block_start":
            return self._start(told)
        if kind == "message_start":
            message = _object(told.get("message"))
            self._frame |= {"id": message.get("id"), "model": message.get("model")}
            self._usage = dict(_object(message.get("usage")))
            begun = chat_usage(self._usage, begun=True) if self._usage else None
            return self._chunk({"role": "assistant", "content": ""}, usage=begun)
        if kind == "message_delta":
            return self._end(told)
        if kind == "message_stop":
            self.ended = True
            return DONE
        return b""

    def _delta(self, told: dict[str, Any]) -> dict[str, Any] | None:
        delta = _object(told.get("delta"))
        kind = _word(delta)
        if kind == "text_delta":
            return {"content": delta.get("text")}
        if kind == "thinking_delta":
            return {"reasoning_content": delta.get("thinking")}
        if kind == "compaction_delta":
            return {"content": delta.get("content")}
        if kind == "input_json_delta" and _index(told) in self._calls:
            arguments = {"arguments": delta.get("partial_json")}
            return {"tool_calls": [{"index": self._calls[_index(told)], "function": arguments}]}
        # What Messages will have tomorrow is relayed as it came: books count it as words may be.
        return {"unnamed": delta} if self._native and kind not in _NO_WORDS else None

    def _start(self, told: dict[str, Any]) -> bytes:
        block = _object(told.get("content_block"))
        kind = _word(block)
        if kind == "tool_use" or (self._native and kind in _CALLS):
            number = self._calls[_index(told)] = len(self._calls)
            given = block.get("input")  # some servers send it at once
            arguments = msgspec.json.encode(given).decode() if given else ""
            return self._chunk({"tool_calls": [_call(number, block, arguments)]})
        text, thought = block.get("text"), block.get("thinking")
        if kind == "text" and text:
            return self._chunk({"content": text})
        if kind == "thinking" and thought:
            return self._chunk({"reasoning_content": thought})
        return b""

    def _end(self, told: dict[str, Any]) -> bytes:
        """The ending, and all that was used: figures of an end are those of the whole answer.

        An end that counts no output leaves that of the start, which is of nothing: no last word.
        """
        usage = _object(told.get("usage"))
        usage = {name: value for name, value in usage.items() if value is not None}
        self._usage |= usage
        self._counted = self._counted or not _OUTPUTS.isdisjoint(usage)
        delta = _object(told.get("delta"))
        last = running = b""
        self._frame |= _tier(self._usage)
        if usage and not self._counted:
            running = self._chunk({}, usage=chat_usage(self._usage, begun=True))
        elif self._counted:
            last = _data({**self._frame, "choices": [], "usage": chat_usage(self._usage)})
        if delta.get("stop_reason") is None:
            return running + last
        details = told.get("stop_details") or delta.get("stop_details")
        return running + self._chunk({}, **_ending({**delta, "stop_details": details})) + last

    def _chunk(
        self, delta: dict[str, Any], usage: dict[str, Any] | None = None, **ending: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None, **ending}
        chunk = {**self._frame, "choices": [choice]}
        return _data(chunk if usage is None else {**chunk, "usage": usage})


def _index(told: Mapping[str, Any]) -> int:
    index = told.get("index")
    return index if type(index) is int else 0


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _data(chunk: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(chunk)
