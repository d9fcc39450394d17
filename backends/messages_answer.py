"""Conversion of Anthropic Messages answers to chat, whole or event by event. No I/O.

The relay, the ledger and chat clients read chat. With `native`, each event carries the target's
original, for clients of Messages (`backends.native_events`). Unknown members, and input of tools
that run at the target, are kept under `UNNAMED`: they are not chat content, but count if usage does
not include them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from backends.messages_usage import chat_usage, object_of, word_of
from backends.native_events import MEMBER, native_comment
from backends.sse import EventSplitter, data_spans, join_data
from backends.text_length import LABEL_BYTES, words_bytes
from backends.web_citations import url_annotations

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
# Stop reasons for which chat has no finish reason.
_TELLING: Final = frozenset(
    ("compaction", "model_context_window_exceeded", "pause_turn", "refusal")
)
_TIERS: Final = {"standard": "default"}
_CALLS: Final = frozenset(("server_tool_use", "mcp_tool_use"))
UNNAMED: Final = "unnamed"
# Member with the text of a block or a delta; None: it has no model output.
_WORDS: Final = {
    "text": "text", "thinking": "thinking", "compaction": "content", "tool_use": "input",
    "redacted_thinking": None,
    "text_delta": "text", "thinking_delta": "thinking", "compaction_delta": "content",
    "citations_delta": None, "signature_delta": None,
}  # fmt: skip
_RESULT: Final = "_result"  # of a tool that runs at the target: the model reads it
_OF_EVENT: Final = frozenset(("content_block", "delta", "index", "message", "usage"))
_OF_MESSAGE: Final = frozenset(("content", "usage"))
_OF_CALL: Final = frozenset(("caller", "server_name"))
_OUTPUTS: Final = frozenset(("output_tokens", "iterations"))


def chat_answer(body: bytes, *, created_s: int, native: bool) -> bytes:
    """Return a whole answer as a chat completion; a body that is no message is unchanged."""
    try:
        message = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        return body
    said = _message(message, native=native)
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


def _unread(block: Mapping[str, Any], words: str | None) -> dict[str, Any]:
    """Return the unread part of a block or delta, empty if it has no text."""
    kind = word_of(block)
    if kind.endswith(_RESULT) or (words is None and kind in _WORDS):
        return {}
    left = {name: value for name, value in block.items() if name != words and name not in _OF_CALL}
    return left if words_bytes([left]) else {}


def _message(message: Mapping[str, Any], *, native: bool) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    cited: list[dict[str, Any]] = []
    left = {name: value for name, value in message.items() if name not in _OF_MESSAGE}
    unread = [left] if words_bytes([left]) > LABEL_BYTES else []
    for block in map(object_of, message["content"]):
        kind = word_of(block)
        words = "input" if native and kind in _CALLS else _WORDS.get(kind)
        unread.append(_unread(block, words))
        if kind in ("text", "compaction"):
            start = sum(map(len, texts))
            texts.append(str(block.get("text") or block.get("content") or ""))
            cited += url_annotations(block.get("citations"), start, start + len(texts[-1]))
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
    if cited:
        said["annotations"] = cited
    if any(unread) and "output_tokens" not in object_of(message.get("usage")):
        said[UNNAMED] = [block for block in unread if block]
    return said


def _call(index: int, block: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    function = {"name": block.get("name"), "arguments": arguments}
    return {"index": index, "id": block.get("id"), "type": "function", "function": function}


def _ending(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the end of a choice from a message or from the delta that ends a stream."""
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
    """A converter of Messages event streams to chat event streams.

    `ended`: the target's final event has arrived. A stream that ends before is broken.
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
        self._silent: set[int] = set()  # blocks of calls whose arguments have not come
        self._said = 0  # characters of the text
        self._cited: dict[int, tuple[int, list[Any]]] = {}  # a text's start, and what it cites
        self._label_bytes = 2 * LABEL_BYTES  # of the start and the end, which are no words

    def feed(self, data: bytes) -> bytes:
        return b"".join(map(self._event, self._splitter.feed(data)))

    @property
    def rest(self) -> bytes:
        """Return an event whose final empty line is missing."""
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
        chunks = self._beside(told) + chunks
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
            message = object_of(told.get("message"))
            self._frame |= {"id": message.get("id"), "model": message.get("model")}
            self._usage = dict(object_of(message.get("usage")))
            begun = chat_usage(self._usage, begun=True) if self._usage else None
            return self._chunk({"role": "assistant", "content": ""}, usage=begun)
        if kind == "message_delta":
            return self._end(told)
        if kind == "content_block_stop":
            return self._stop(_index(told))
        self.ended = self.ended or kind == "message_stop"
        return DONE if kind == "message_stop" else b""

    def _stop(self, index: int) -> bytes:
        """Return what is told once a block is whole: that a call has no arguments, citations."""
        if index in self._silent:
            return self._chunk(self._arguments(index, "{}"))  # as chat tells none
        start, citations = self._cited.pop(index, (0, []))
        cited = url_annotations(citations, start, self._said)
        return self._chunk({"annotations": cited}) if cited else b""

    def _beside(self, told: dict[str, Any]) -> bytes:
        """Return a chunk with the unnamed members of an event."""
        left = {name: value for name, value in told.items() if name not in _OF_EVENT}
        if "message" in told:
            left |= object_of(told["message"]) | {"usage": None}
        if told.get("type") == "message_delta":
            left |= object_of(told.get("delta"))
        if len(left) < 2:  # its type
            return b""
        words = words_bytes([left])
        free = min(words, self._label_bytes)
        self._label_bytes -= free
        return self._chunk({UNNAMED: left}) if words > free else b""

    def _delta(self, told: dict[str, Any]) -> dict[str, Any] | None:
        delta = object_of(told.get("delta"))
        kind = word_of(delta)
        made = self._known(told, delta, kind)
        words = "partial_json" if made and "tool_calls" in made else _WORDS.get(kind)
        unread = _unread(delta, words)
        return {**(made or {}), UNNAMED: unread} if unread else made

    def _known(
        self, told: dict[str, Any], delta: dict[str, Any], kind: str
    ) -> dict[str, Any] | None:
        if kind == "text_delta":
            self._said += len(str(delta.get("text") or ""))
            return {"content": delta.get("text")}
        if kind == "citations_delta" and _index(told) in self._cited:
            self._cited[_index(told)][1].append(delta.get("citation"))
        if kind == "thinking_delta":
            return {"reasoning_content": delta.get("thinking")}
        if kind == "compaction_delta":
            return {"content": delta.get("content")}
        if kind == "input_json_delta" and _index(told) in self._calls:
            return self._arguments(_index(told), delta.get("partial_json"))
        return None

    def _arguments(self, index: int, text: Any) -> dict[str, Any]:
        if text:
            self._silent.discard(index)
        call = {"index": self._calls[index], "function": {"arguments": text}}
        return {"tool_calls": [call]}

    def _start(self, told: dict[str, Any]) -> bytes:
        block, made = object_of(told.get("content_block")), dict[str, Any]()
        kind = word_of(block)
        is_call = kind == "tool_use" or (self._native and kind in _CALLS)
        words = "input" if is_call else _WORDS.get(kind)
        text, thought = block.get("text"), block.get("thinking")
        if is_call:
            number = self._calls[_index(told)] = len(self._calls)
            given = block.get("input")  # some servers send it at once
            arguments = msgspec.json.encode(given).decode() if given else ""
            if not given:
                self._silent.add(_index(told))
            made = {"tool_calls": [_call(number, block, arguments)]}
        elif kind == "text":
            self._cited[_index(told)] = (self._said, list(block.get("citations") or ()))
            self._said += len(str(text or ""))
            made = {"content": text} if text else {}
        elif kind == "thinking" and thought:
            made = {"reasoning_content": thought}
        elif kind == "compaction" and block.get("content"):
            made = {"content": block["content"]}
        if unread := _unread(block, words):
            made[UNNAMED] = unread
        return self._chunk(made) if made else b""

    def _end(self, told: dict[str, Any]) -> bytes:
        """Return the end and the whole usage; counts of an end cover the whole answer.

        An end without an output count keeps the count of the start, which is no final count.
        """
        usage = object_of(told.get("usage"))
        usage = {name: value for name, value in usage.items() if value is not None}
        self._usage |= usage
        self._counted = self._counted or not _OUTPUTS.isdisjoint(usage)
        delta = object_of(told.get("delta"))
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


def _data(chunk: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(chunk)
