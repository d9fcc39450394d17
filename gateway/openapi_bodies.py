"""What a request's body may hold, path by path, as JSON Schema.

Only what the gateway reads is described, as strictly as it is read; what it hands on is the
target's to judge, and new members of a vendor pass through. `null` is a member that is not there.
"""

from typing import Any

from gateway.config.schema import NAME
from gateway.http.forms import FILE, NAMES, PARTS_LIMIT
from gateway.intake import EMBEDDING_INPUTS_LIMIT, MAX_TOKENS_LIMIT, MODEL_LIMIT
from gateway.limits.asks import STOP_CHARACTERS, STOPS
from gateway.measured.requests import DOCUMENTS_LIMIT, RANKING, READERS

Schema = dict[str, Any]

RANKINGS = tuple(path for path, reader in READERS.items() if reader is RANKING)
SOUNDS = tuple(path for path in READERS if path not in RANKINGS)  # each sent as a form
TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
_TOKEN: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_FLAG: Schema = {"type": ["boolean", "null"]}
_LIMIT: Schema = {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TOKENS_LIMIT}
_MODEL: Schema = {
    "type": "string", "minLength": 1, "maxLength": MODEL_LIMIT, "pattern": NAME,
    "description": "A logical model of `GET /v1/models`",
}  # fmt: skip
_STREAM: Schema = {
    "stream": _FLAG,
    "stream_options": {
        "type": ["object", "null"],
        "description": "Only with `stream`; `include_usage: true` adds an event with the usage",
    },
}
_OPTIONS_NEED_STREAM: Schema = {
    "if": {
        "required": ["stream_options"],
        "properties": {"stream_options": {"type": "object", "minProperties": 1}},
    },
    "then": {"required": ["stream"], "properties": {"stream": {"const": True}}},
}


_STOP: Schema = {"type": "string", "maxLength": STOP_CHARACTERS}
_STOPS: Schema = {"type": "array", "items": _STOP, "maxItems": STOPS}


def bodies(max_n: int) -> dict[str, Schema]:
    """`max_n`: most answers of one request (`server.max_n`)."""
    shared = {
        "model": _MODEL,
        **_STREAM,
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": max_n},
        "stop": {"anyOf": [_STOP, _STOPS, {"type": "null"}]},
        "user": {"type": ["string", "null"]},
        "max_tokens": _LIMIT,
    }
    return {
        "/v1/chat/completions": {
            **_body(
                "messages",
                {
                    **shared,
                    "max_completion_tokens": _LIMIT,
                    "messages": _CHAT,
                    **_nulls("prompt", "input"),
                },
            ),
            **_OPTIONS_NEED_STREAM,
        },
        "/v1/completions": {
            **_body("prompt", {**shared, "prompt": _prompt(max_n), **_nulls("messages", "input")}),
            **_OPTIONS_NEED_STREAM,
        },
        "/v1/embeddings": _body(
            "input",
            {
                "model": _MODEL,
                "input": _prompt(EMBEDDING_INPUTS_LIMIT),
                "user": {"type": ["string", "null"]},
                **_nulls("n", "messages", "prompt"),
            },
        ),
        "/v1/messages": _body(
            "messages",
            {
                **_CONVERSATION,
                "stream": _FLAG,
                "max_tokens": {**_LIMIT, "type": "integer"},
                "stop_sequences": {**_STOPS, "type": ["array", "null"]},
                **_absent("n", "stop", "stream_options", "max_completion_tokens"),
            },
            "max_tokens",
        ),
        "/v1/messages/count_tokens": _body(
            "messages",
            {**_CONVERSATION, **_absent("n", "stop", "stream_options", "max_completion_tokens")},
        ),
        "/v1/responses": _body(
            "input",
            {
                "model": _MODEL,
                "input": {"anyOf": [TEXT, _list(_ITEM)]},
                "instructions": {"type": ["string", "null"]},
                "stream": _FLAG,
                "max_output_tokens": _LIMIT,
                "tools": {"type": ["array", "null"], "items": _FUNCTION},
                "user": {"type": ["string", "null"]},
                **_absent("n", "messages", "max_tokens", "max_completion_tokens"),
            },
        ),
        **dict.fromkeys(RANKINGS, _body("query", _RANKED, "documents")),
        **dict.fromkeys(SOUNDS, _form({"model": _MODEL, **_SOUND})),
    }


def _body(prompt: str, properties: Schema, *required: str) -> Schema:
    return {
        "type": "object",
        "required": ["model", prompt, *required],
        "properties": properties,
        "additionalProperties": True,
    }


def _form(properties: Schema) -> Schema:
    """Every value is a text, whatever it says; a name stands once, unless it ends in `[]`."""
    return {
        **_body(FILE, properties),
        "additionalProperties": TEXT,
        "propertyNames": {"pattern": f"^(?:{NAMES})$"},
        "maxProperties": PARTS_LIMIT - 1,
    }


def _absent(*names: str) -> Schema:
    """Members of chat completions that say nothing here: empty, or a 400."""
    return {name: {"enum": [None, False, [], {}]} for name in names}


def _nulls(*names: str) -> Schema:
    return {name: {"type": "null"} for name in names}


def _list(items: Schema, most: int | None = None) -> Schema:
    """With one item at least."""
    found: Schema = {"type": "array", "minItems": 1, "items": items}
    return found if most is None else {**found, "maxItems": most}


def _prompt(most: int) -> Schema:
    """A text or its tokens, or a list of one of both."""
    return {
        "anyOf": [
            {"type": "string", "minLength": 1},
            _list(TEXT, most),
            _list(_TOKEN),
            _list(_list(_TOKEN), most),
        ]
    }


def _of(kind: str, required: Schema, **optional: Schema) -> Schema:
    """An object that tells its type."""
    return {
        "type": "object",
        "required": ["type", *required],
        "properties": {"type": {"const": kind}, **required, **optional},
    }


def _turn(roles: list[str], content: Schema) -> Schema:
    return {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"enum": roles}, "content": content},
    }


_CHAT = _list({"type": "object", "required": ["role"], "properties": {"role": TEXT}})

_TEXT_BLOCK = _of("text", {"text": TEXT})
_TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": _TEXT_BLOCK}]}
_TEXTS_OR_NONE: Schema = {"anyOf": [*_TEXTS["anyOf"], {"type": "null"}]}
_IMAGE = _of(
    "image",
    {
        "source": {
            "anyOf": [
                _of("url", {"url": TEXT}),
                _of("base64", {"media_type": TEXT, "data": TEXT}),
            ]
        }
    },
)
_RESULT = _of("tool_result", {"tool_use_id": TEXT}, content=_TEXTS_OR_NONE)
_CONVERSATION: Schema = {
    "model": _MODEL,
    "system": _TEXTS_OR_NONE,
    "messages": {
        **_list(
            {
                "anyOf": [
                    _turn(
                        ["user"],
                        {"anyOf": [TEXT, _list({"anyOf": [_TEXT_BLOCK, _IMAGE, _RESULT]})]},
                    ),
                    _turn(
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
                                        ]
                                    },
                                },
                            ]
                        },
                    ),
                    _turn(["system"], _TEXTS),
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
_SAID = {"type": "string", "minLength": 1}  # an answer that says nothing is none
_ITEM: Schema = {
    "anyOf": [
        _turn(["user"], {"anyOf": [TEXT, _list(_SHOWN)]}),
        _turn(["system", "developer"], {"anyOf": [TEXT, {"type": "array", "items": _PART}]}),
        _turn(["assistant"], {"anyOf": [_SAID, _list(_of("output_text", {"text": _SAID}))]}),
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

_RANKED: Schema = {
    "model": _MODEL,
    "query": {"anyOf": [{"type": "string", "minLength": 1}, OBJECT]},
    "documents": _list({"anyOf": [TEXT, OBJECT]}, DOCUMENTS_LIMIT),
    "top_n": {"type": ["integer", "null"], "minimum": 0},
}
_SWITCH: Schema = {"enum": ["true", "false", "1", "0"]}
_SOUND: Schema = {
    FILE: {"type": "string", "format": "binary", "minLength": 1},
    "language": TEXT,
    "prompt": TEXT,
    "response_format": TEXT,
    "stream": _SWITCH,
    "stream_include_usage": _SWITCH,
    "stream_continuous_usage_stats": _SWITCH,
}
