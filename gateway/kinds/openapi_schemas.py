"""JSON Schema shared by the bodies of several paths."""

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
    """Return the members that chat completions and completions share."""
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
    """Return the schema of a form: values are texts, and a name occurs once except with `[]`."""
    return {
        **body_schema(FILE, properties),
        "additionalProperties": TEXT,
        "propertyNames": {"pattern": f"^(?:{NAMES})$"},
        "maxProperties": PARTS_LIMIT - 1,
    }


def edit_schema(properties: Schema) -> Schema:
    """Return the schema of a form whose file is `image`, with an optional `mask`.

    Several pictures come in `image[]`, which the schema leaves out, since an empty list would be no
    part at all.
    """
    file: Schema = {"type": "string", "format": "binary", "minLength": 1}
    schema = form_schema({**properties, "image": file, "mask": file})
    return {**schema, "required": ["model", "prompt", "image"]}


def null_members(*names: str) -> Schema:
    return {name: {"type": "null"} for name in names}


def list_schema(items: Schema, most: int | None = None) -> Schema:
    """Return the schema of a list with at least one item."""
    schema: Schema = {"type": "array", "minItems": 1, "items": items}
    return schema if most is None else {**schema, "maxItems": most}


def prompt_schema(most: int) -> Schema:
    """Return the schema of a text, its token ids, or a list of either."""
    return {
        "anyOf": [
            {"type": "string", "minLength": 1},
            list_schema(TEXT, most),
            list_schema(_TOKEN),
            list_schema(list_schema(_TOKEN), most),
        ]
    }


def answer_schema(*required: str) -> Schema:
    """Return the schema of an answer's required members; the rest is up to the target."""
    return {"type": "object", "required": list(required)}
