"""Answers in each wire format that LiteLLM translates, by the providers' own references (2026-11).

Each format says the same: `Hello` in two parts, eleven tokens in (four of them cached, where the
format has a count for that) and five out; or a call of the tool `look` with `{"at": 1}`.
"""

import base64
import binascii
import json
import struct
from typing import Any, NamedTuple

TEXT = "Hello"
ARGUMENTS = {"at": 1}
PROMPT, OUTPUT, CACHED = 11, 5, 4
SSE = "text/event-stream"
EVENTS = "application/vnd.amazon.eventstream"
LINES = "application/x-ndjson"


class WireShape(NamedTuple):
    """One format. `counts`, `counts_stream`: whether its answers tell usage."""

    names: tuple[str, ...]
    model: str
    whole: bytes
    stream: bytes
    kind: str = SSE
    tool: bytes = b""
    tool_stream: bytes = b""
    cached: int | None = None
    error: bytes = b'{"error": {"message": "down"}}'
    counts: bool = True
    counts_stream: bool = True


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _sse(*values: Any, named: bool = False, done: bool = False) -> bytes:
    text = b""
    for value in values:
        text += b"event: %s\n" % value["type"].encode() if named else b""
        text += b"data: " + _json(value) + b"\n\n"
    return text + (b"data: [DONE]\n\n" if done else b"")


def _lines(*values: Any) -> bytes:
    return b"".join(_json(value) + b"\n" for value in values)


def _amazon(*events: tuple[str, Any]) -> bytes:
    """Return messages of Amazon's event stream: lengths, headers and two checksums each."""
    out = b""
    for name, value in events:
        headers = b""
        for key, word in ((":event-type", name), (":content-type", "application/json"),
                          (":message-type", "event")):  # fmt: skip
            text = word.encode()
            headers += struct.pack("!B", len(key)) + key.encode() + b"\x07"
            headers += struct.pack("!H", len(text)) + text
        payload = value if isinstance(value, bytes) else _json(value)
        total = 16 + len(headers) + len(payload)
        prelude = struct.pack("!II", total, len(headers))
        message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + payload
        out += message + struct.pack("!I", binascii.crc32(message))
    return out


def _chat(**choice: Any) -> dict[str, Any]:
    usage = {
        "prompt_tokens": PROMPT, "completion_tokens": OUTPUT, "total_tokens": PROMPT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED},
    }  # fmt: skip
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, **choice}], "usage": usage,
    }  # fmt: skip


def _chunks(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append({**head, "choices": [], "usage": _chat()["usage"]})
    return _sse(*chunks, done=True)


_CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
CHAT = WireShape(
    ("azure", "databricks", "datarobot", "fireworks_ai", "huggingface", "openrouter", "snowflake",
     "watsonx", "azure_ai", "bedrock_mantle", "ragflow"),
    "some-model",
    _json(_chat(message={"role": "assistant", "content": TEXT}, finish_reason="stop")),
    _chunks({"role": "assistant", "content": "Hel"}, {"content": "lo"}),
    tool=_json(_chat(message={"role": "assistant", "content": None, "tool_calls": [_CALL]},
                     finish_reason="tool_calls")),
    tool_stream=_chunks(
        {"role": "assistant", "tool_calls": [{"index": 0, **_CALL, "function": {
            "name": "look", "arguments": '{"at"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        finish="tool_calls",
    ),
    cached=CACHED,
)  # fmt: skip

_CLAUDE_USAGE = {"input_tokens": PROMPT - CACHED, "cache_read_input_tokens": CACHED,
                 "cache_creation_input_tokens": 0}  # fmt: skip


def _claude(content: list[Any], stop: str) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": content, "stop_reason": stop, "stop_sequence": None,
        "usage": {**_CLAUDE_USAGE, "output_tokens": OUTPUT},
    }  # fmt: skip


def _claude_events(block: dict[str, Any], deltas: list[Any], stop: str) -> list[dict[str, Any]]:
    begun = {
        **_claude([], stop),
        "stop_reason": None,
        "usage": {**_CLAUDE_USAGE, "output_tokens": 1},
    }
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": OUTPUT}},
        {"type": "message_stop"},
    ]  # fmt: skip


_CLAUDE_TEXT = _claude_events(
    {"type": "text", "text": ""},
    [{"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo"}], "end_turn",
)  # fmt: skip
_CLAUDE_TOOL = _claude_events(
    {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    [{"type": "input_json_delta", "partial_json": part} for part in ('{"at"', ": 1}")], "tool_use",
)  # fmt: skip
_CLAUDE_WHOLE = _json(_claude([{"type": "text", "text": TEXT}], "end_turn"))
_CLAUDE_TOOL_WHOLE = _json(
    _claude([{"type": "tool_use", "id": "t1", "name": "look", "input": ARGUMENTS}], "tool_use")
)
MESSAGES = WireShape(
    ("anthropic",), "claude-x", _CLAUDE_WHOLE, _sse(*_CLAUDE_TEXT, named=True),
    tool=_CLAUDE_TOOL_WHOLE, tool_stream=_sse(*_CLAUDE_TOOL, named=True), cached=CACHED,
    error=_json({"type": "error", "error": {"type": "api_error", "message": "down"}}),
)  # fmt: skip


def _invoked(*values: Any) -> bytes:
    return _amazon(
        *[("chunk", {"bytes": base64.b64encode(_json(value)).decode()}) for value in values]
    )


INVOKE = WireShape(
    ("bedrock",), "invoke/anthropic.claude-3-haiku-20240307-v1:0", _CLAUDE_WHOLE,
    _invoked(*_CLAUDE_TEXT), EVENTS, tool=_CLAUDE_TOOL_WHOLE, tool_stream=_invoked(*_CLAUDE_TOOL),
    cached=CACHED, error=b'{"message": "down"}',
)  # fmt: skip

_CONVERSE_USAGE = {
    "inputTokens": PROMPT - CACHED, "outputTokens": OUTPUT, "totalTokens": PROMPT + OUTPUT,
    "cacheReadInputTokens": CACHED, "cacheWriteInputTokens": 0,
}  # fmt: skip


def _converse(content: list[Any], stop: str) -> bytes:
    message = {"role": "assistant", "content": content}
    return _json({"output": {"message": message}, "stopReason": stop, "usage": _CONVERSE_USAGE,
                  "metrics": {"latencyMs": 5}})  # fmt: skip


def _converse_events(start: Any, deltas: list[Any], stop: str) -> bytes:
    begun = [("contentBlockStart", {"contentBlockIndex": 0, "start": start})] if start else []
    return _amazon(
        ("messageStart", {"role": "assistant"}),
        *begun,
        *[("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}) for delta in deltas],
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": stop}),
        ("metadata", {"usage": _CONVERSE_USAGE, "metrics": {"latencyMs": 5}}),
    )


CONVERSE = WireShape(
    ("bedrock",), "amazon.nova-lite-v1:0", _converse([{"text": TEXT}], "end_turn"),
    _converse_events(None, [{"text": "Hel"}, {"text": "lo"}], "end_turn"), EVENTS,
    tool=_converse([{"toolUse": {"toolUseId": "t1", "name": "look", "input": ARGUMENTS}}],
                   "tool_use"),
    tool_stream=_converse_events(
        {"toolUse": {"toolUseId": "t1", "name": "look"}},
        [{"toolUse": {"input": part}} for part in ('{"at"', ": 1}")], "tool_use",
    ),
    cached=CACHED, error=b'{"message": "down"}',
)  # fmt: skip


def _gemini(parts: list[Any], finish: str | None = "STOP", *, usage: bool = True) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    told = {
        "promptTokenCount": PROMPT, "candidatesTokenCount": OUTPUT,
        "cachedContentTokenCount": CACHED, "totalTokenCount": PROMPT + OUTPUT,
    }  # fmt: skip
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r",
            **({"usageMetadata": told} if usage else {})}  # fmt: skip


_LOOK = {"functionCall": {"name": "look", "args": ARGUMENTS}}
GEMINI = WireShape(
    ("gemini", "vertex_ai"), "gemini-2.5-flash", _json(_gemini([{"text": TEXT}])),
    _sse(_gemini([{"text": "Hel"}], None, usage=False), _gemini([{"text": "lo"}])),
    tool=_json(_gemini([_LOOK])), tool_stream=_sse(_gemini([_LOOK])), cached=CACHED,
    error=_json({"error": {"code": 500, "message": "down", "status": "INTERNAL"}}),
)  # fmt: skip

_COHERE_USAGE = {
    "billed_units": {"input_tokens": PROMPT, "output_tokens": OUTPUT},
    "tokens": {"input_tokens": PROMPT, "output_tokens": OUTPUT},
}


def _cohere(finish: str, **message: Any) -> bytes:
    return _json({"id": "c", "finish_reason": finish, "usage": _COHERE_USAGE,
                  "message": {"role": "assistant", **message}})  # fmt: skip


def _cohere_events(finish: str, *events: Any) -> bytes:
    return _sse(
        {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}},
        *events,
        {"type": "message-end", "delta": {"finish_reason": finish, "usage": _COHERE_USAGE}},
        named=True,
    )


COHERE = WireShape(
    ("cohere", "cohere_chat"), "command-a-03-2025",
    _cohere("COMPLETE", content=[{"type": "text", "text": TEXT}]),
    _cohere_events(
        "COMPLETE",
        {"type": "content-start", "index": 0,
         "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        *[{"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": part}}}}
          for part in ("Hel", "lo")],
        {"type": "content-end", "index": 0},
    ),
    tool=_cohere("TOOL_CALL", tool_calls=[_CALL]),
    tool_stream=_cohere_events(
        "TOOL_CALL",
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {
            **_CALL, "function": {"name": "look", "arguments": ""}}}}},
        *[{"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {
            "function": {"arguments": part}}}}} for part in ('{"at"', ": 1}")],
        {"type": "tool-call-end", "index": 0},
    ),
    error=b'{"message": "down"}',
)  # fmt: skip


def _ollama(done: bool, **more: Any) -> dict[str, Any]:
    ended = {"done_reason": "stop", "prompt_eval_count": PROMPT, "eval_count": OUTPUT,
             "total_duration": 5}  # fmt: skip
    return {"model": "m", "created_at": "2026-11-28T00:00:00Z", "done": done, **more,
            **(ended if done else {})}  # fmt: skip


_OLLAMA_CALL = {"role": "assistant", "content": "",
                "tool_calls": [{"function": {"name": "look", "arguments": ARGUMENTS}}]}  # fmt: skip
OLLAMA_CHAT = WireShape(
    ("ollama_chat",), "m", _json(_ollama(True, message={"role": "assistant", "content": TEXT})),
    _lines(
        *[_ollama(False, message={"role": "assistant", "content": part}) for part in ("Hel", "lo")],
        _ollama(True, message={"role": "assistant", "content": ""}),
    ),
    LINES,
    tool=_json(_ollama(True, message=_OLLAMA_CALL)),
    tool_stream=_lines(_ollama(False, message=_OLLAMA_CALL),
                       _ollama(True, message={"role": "assistant", "content": ""})),
    error=b'{"error": "down"}',
)  # fmt: skip
OLLAMA = WireShape(
    ("ollama",), "m", _json(_ollama(True, response=TEXT)),
    _lines(*[_ollama(False, response=part) for part in ("Hel", "lo")], _ollama(True, response="")),
    LINES, error=b'{"error": "down"}',
)  # fmt: skip

WATSONX_TEXT = WireShape(
    ("watsonx_text",), "ibm/granite-3-8b-instruct",
    _json({"model_id": "m", "created_at": "2026-11-28T00:00:00Z", "results": [{
        "generated_text": TEXT, "generated_token_count": OUTPUT, "input_token_count": PROMPT,
        "stop_reason": "eos_token"}]}),
    _sse(
        {"model_id": "m", "results": [{"generated_text": "Hel", "generated_token_count": 2,
         "input_token_count": PROMPT, "stop_reason": "not_finished"}]},
        {"model_id": "m", "results": [{"generated_text": "lo", "generated_token_count": OUTPUT,
         "input_token_count": PROMPT, "stop_reason": "eos_token"}]},
    ),
)  # fmt: skip
SAGEMAKER = WireShape(
    ("sagemaker",), "endpoint", _json([{"generated_text": TEXT}]),
    _amazon(*[("PayloadPart", value) for value in (
        {"token": {"text": "Hel"}, "is_finished": False}, {"token": {"text": "lo"}},
    )]),
    EVENTS, counts=False, counts_stream=False, error=b'{"message": "down"}',
)  # fmt: skip


def _parts(stream: bytes) -> list[tuple[str, bytes]]:
    return [("PayloadPart", event + b"\n\n") for event in stream.split(b"\n\n") if event]


SAGEMAKER_CHAT = CHAT._replace(
    names=("sagemaker_chat",), model="endpoint", kind=EVENTS,
    stream=_amazon(*_parts(CHAT.stream)), tool_stream=_amazon(*_parts(CHAT.tool_stream)),
    error=b'{"message": "down"}',
)  # fmt: skip
SHAPES = {
    "chat": CHAT, "messages": MESSAGES, "converse": CONVERSE, "invoke": INVOKE, "gemini": GEMINI,
    "cohere": COHERE, "ollama": OLLAMA, "ollama_chat": OLLAMA_CHAT, "watsonx_text": WATSONX_TEXT,
    "sagemaker": SAGEMAKER, "sagemaker_chat": SAGEMAKER_CHAT,
}  # fmt: skip
