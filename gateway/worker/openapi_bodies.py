"""Inference paths with their bodies as JSON Schema: request kinds and other dialects.

Schemas describe only what the gateway reads, as strictly as it reads it. Other members pass through
and are checked by the target. `null` counts as absent.
"""

from typing import Final

from gateway.kinds import KINDS
from gateway.kinds.openapi_schemas import (
    FLAG,
    MODEL,
    OBJECT,
    STOP_LIST,
    TEXT,
    TOKEN_LIMIT,
    USER,
    answer_schema,
    body_schema,
    list_schema,
)
from gateway.kinds.spec import PathDescription, Schema


def _absent_members(*names: str) -> Schema:
    """Return schemas of chat members that do not apply here: empty, or a 400."""
    return {name: {"enum": [None, False, [], {}]} for name in names}


def _of(kind: str, required: Schema, **optional: Schema) -> Schema:
    """Return the schema of an object with this `type`."""
    return {
        "type": "object",
        "required": ["type", *required],
        "properties": {"type": {"const": kind}, **required, **optional},
    }


def _message_schema(roles: list[str], content: Schema) -> Schema:
    return {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"enum": roles}, "content": content},
    }


def _translated_path(
    summary: str, body: Schema, *answer: str, streamed: bool = True
) -> PathDescription:
    """Describe a path of another dialect that is answered by a chat completion.

    `answer` names the members that a response has at least.
    """
    return PathDescription(
        summary=summary,
        body=lambda _max_n: body,
        answer=answer_schema(*answer),
        form=False,
        streamed=streamed,
        texts=False,
    )


_PICTURE_TYPE: Schema = {"type": "string", "pattern": "^image/"}
_TEXT_BLOCK = _of("text", {"text": TEXT})
_TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": _TEXT_BLOCK}]}
_TEXTS_OR_NONE: Schema = {"anyOf": [*_TEXTS["anyOf"], {"type": "null"}]}
_IMAGE = _of(
    "image",
    {
        "source": {
            "anyOf": [
                _of("url", {"url": TEXT}),
                _of("base64", {"media_type": _PICTURE_TYPE, "data": TEXT}),
            ]
        }
    },
)
# Blocks whose members are checked. Other blocks of a model or tool are accepted, because the
# client only repeats them.
RESULT_BLOCKS: Final = (
    "container_upload", "document", "image", "mcp_tool_use", "search_result", "server_tool_use",
    "text", "tool_reference",
)  # fmt: skip
ASSISTANT_BLOCKS: Final = (*RESULT_BLOCKS, "tool_result", "tool_use")


def _other_block(checked: tuple[str, ...]) -> Schema:
    kind: Schema = {"type": "string", "not": {"enum": list(checked)}}
    return {"type": "object", "required": ["type"], "properties": {"type": kind}}


_TOLD: Schema = {"type": "array", "items": {"anyOf": [_TEXT_BLOCK, _other_block(RESULT_BLOCKS)]}}
_RESULT = _of(
    "tool_result", {"tool_use_id": TEXT}, content={"anyOf": [TEXT, _TOLD, {"type": "null"}]}
)
_CONVERSATION: Schema = {
    "model": MODEL,
    "system": _TEXTS_OR_NONE,
    "messages": {
        **list_schema(
            {
                "anyOf": [
                    _message_schema(
                        ["user"],
                        {"anyOf": [TEXT, list_schema({"anyOf": [_TEXT_BLOCK, _IMAGE, _RESULT]})]},
                    ),
                    _message_schema(
                        ["assistant"],
                        {
                            "anyOf": [
                                TEXT,
                                {
                                    "type": "array",
                                    "items": {
                                        "anyOf": [
                                            _TEXT_BLOCK,
                                            _of(
                                                "tool_use",
                                                {"id": TEXT, "name": TEXT, "input": OBJECT},
                                            ),
                                            _other_block(ASSISTANT_BLOCKS),
                                        ]
                                    },
                                },
                            ]
                        },
                    ),
                    _message_schema(["system"], _TEXTS),
                ]
            }
        ),
        "description": "The last one is not the assistant's",
    },
    "tools": {
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "required": ["name", "input_schema"],
            "properties": {
                "type": {"enum": ["custom", None]},
                "name": TEXT,
                "description": {"type": ["string", "null"]},
                "input_schema": OBJECT,
            },
        },
    },
}

_PART = {
    "anyOf": [
        _of("input_text", {"text": TEXT}),
        _of("output_text", {"text": TEXT}),
        _of("text", {"text": TEXT}),
    ]
}
_SHOWN = {"anyOf": [_PART, _of("input_image", {"image_url": TEXT})]}
_SAID = {"type": "string", "minLength": 1}  # empty answers are rejected
# Output of any other type becomes one line of text, except input types of a user.
_ELSEWHERE: Schema = {
    "type": "string",
    "minLength": 1,
    "not": {"anyOf": [{"enum": ["output_text", "text"]}, {"pattern": "^(input_|refusal)"}]},
}
_ANSWERED: Schema = {
    "anyOf": [
        _of("output_text", {"text": _SAID}),
        _of("text", {"text": _SAID}),
        _of("refusal", {"refusal": _SAID}),
        {"type": "object", "required": ["type"], "properties": {"type": _ELSEWHERE}},
    ]
}
_ITEM: Schema = {
    "anyOf": [
        _message_schema(["user"], {"anyOf": [TEXT, list_schema(_SHOWN)]}),
        _message_schema(
            ["system", "developer"], {"anyOf": [TEXT, {"type": "array", "items": _PART}]}
        ),
        _message_schema(["assistant"], {"anyOf": [_SAID, list_schema(_ANSWERED)]}),
        _of("function_call", {"call_id": TEXT, "name": TEXT, "arguments": TEXT}),
        _of("function_call_output", {"call_id": TEXT, "output": TEXT}),
    ]
}
_FUNCTION = _of(
    "function",
    {"name": TEXT},
    description={"type": ["string", "null"]},
    parameters={"type": ["object", "null"]},
)

_NOT_IN_MESSAGES = _absent_members("n", "stop", "stream_options", "max_completion_tokens")
_MESSAGES = body_schema(
    "messages",
    {
        **_CONVERSATION,
        "stream": FLAG,
        "max_tokens": {**TOKEN_LIMIT, "type": "integer"},
        "stop_sequences": {**STOP_LIST, "type": ["array", "null"]},
        **_NOT_IN_MESSAGES,
    },
    "max_tokens",
)
_RESPONSES = body_schema(
    "input",
    {
        "model": MODEL,
        "input": {"anyOf": [TEXT, list_schema(_ITEM)]},
        "instructions": {"type": ["string", "null"]},
        "stream": FLAG,
        "max_output_tokens": TOKEN_LIMIT,
        "tools": {"type": ["array", "null"], "items": _FUNCTION},
        **USER,
        **_absent_members("n", "messages", "max_tokens", "max_completion_tokens"),
    },
)
INFERENCE_PATHS: Final[dict[str, PathDescription]] = {
    **{path: entry.described for spec in KINDS.values() for path, entry in spec.paths.items()},
    "/v1/messages": _translated_path(
        "Anthropic's Messages, as a chat completion",
        _MESSAGES,
        "id", "type", "role", "model", "content", "stop_reason", "usage",
    ),
    "/v1/messages/count_tokens": _translated_path(
        "How many tokens such a request may have (an estimate)",
        body_schema("messages", {**_CONVERSATION, **_NOT_IN_MESSAGES}),
        "input_tokens",
        streamed=False,
    ),
    "/v1/responses": _translated_path(
        "OpenAI's Responses, as a chat completion; `GET` opens a WebSocket of the same",
        _RESPONSES,
        "id", "object", "created_at", "model", "status", "output",
    ),
    "/v1/responses/input_tokens": _translated_path(
        "How many tokens such a request may have (an estimate)",
        _RESPONSES,
        "object", "input_tokens",
        streamed=False,
    ),
    "/v1/responses/compact": _translated_path(
        "A conversation, summed up by the model that continues it",
        _RESPONSES,
        "id", "object", "created_at", "output", "usage",
        streamed=False,
    ),
}  # fmt: skip
