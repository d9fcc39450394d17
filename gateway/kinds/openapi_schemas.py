"""JSON Schema that the bodies of several paths share."""

from gateway.config.schema import NAME
from gateway.http.forms import FILE, NAMES, PARTS_LIMIT
from gateway.kinds.request_checks import STOP_CHARACTERS, STOPS
from gateway.kinds.spec import Schema
from gateway.kinds.text_members import MAX_TOKENS_LIMIT, MODEL_LIMIT

TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
FLAG: Schema = {"type": ["boolean", "null"]}
USER: Schema = {"user": {"type": ["string", "null"]}}
TOKEN_LIMIT: Schema = {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TOKENS_LIMIT}
MODEL: Schema = {
    "type": "string", "minLength": 1, "maxLength": MODEL_LIMIT, "pattern": NAME,
    "description": "A logical model of `GET /v1/models`",
}  # fmt: skip
OPTIONS_NEED_STREAM: Schema = {
    "if": {
        "required": ["stream_options"],
        "properties": {"stream_options": {"type": "object", "minProperties": 1}},
    },
    "then": {"required": ["stream"], "properties": {"stream": {"const": True}}},
}
_TOKEN: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_STREAM: Schema = {
    "stream": FLAG,
    "stream_options": {
        "type": ["object", "null"],
        "description": "Only with `stream`; `include_usage: true` adds an event with the usage",
    },
}
_STOP: Schema = {"type": "string", "maxLength": STOP_CHARACTERS}
STOP_LIST: Schema = {"type": "array", "items": _STOP, "maxItems": STOPS}


def generation_members(max_n: int) -> Schema:
    """Return members that chat completions and completions share."""
    return {
        "model": MODEL,
        **_STREAM,
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": max_n},
        "stop": {"anyOf": [_STOP, STOP_LIST, {"type": "null"}]},
        **USER,
        "max_tokens": TOKEN_LIMIT,
    }


def body_schema(prompt: str, properties: Schema, *required: str) -> Schema:
    return {
        "type": "object",
        "required": ["model", prompt, *required],
        "properties": properties,
        "additionalProperties": True,
    }


def form_schema(properties: Schema) -> Schema:
    """Every value is a text, whatever it says; a name stands once, unless it ends in `[]`."""
    return {
        **body_schema(FILE, properties),
        "additionalProperties": TEXT,
        "propertyNames": {"pattern": f"^(?:{NAMES})$"},
        "maxProperties": PARTS_LIMIT - 1,
    }


def edit_schema(properties: Schema) -> Schema:
    """Like `form_schema`, of a form whose file is `image`, with a `mask`.

    Several pictures come in `image[]`, which no schema can say: an empty list is no part at all.
    """
    file: Schema = {"type": "string", "format": "binary", "minLength": 1}
    schema = form_schema({**properties, "image": file, "mask": file})
    return {**schema, "required": ["model", "prompt", "image"]}


def null_members(*names: str) -> Schema:
    return {name: {"type": "null"} for name in names}


def list_schema(items: Schema, most: int | None = None) -> Schema:
    """With one item at least."""
    schema: Schema = {"type": "array", "minItems": 1, "items": items}
    return schema if most is None else {**schema, "maxItems": most}


def prompt_schema(most: int) -> Schema:
    """Return a text or its tokens, or a list of one of both."""
    return {
        "anyOf": [
            {"type": "string", "minLength": 1},
            list_schema(TEXT, most),
            list_schema(_TOKEN),
            list_schema(list_schema(_TOKEN), most),
        ]
    }


def answer_schema(*required: str) -> Schema:
    """Schema of the least that an answer has; the rest is as the target wrote it."""
    return {"type": "object", "required": list(required)}
