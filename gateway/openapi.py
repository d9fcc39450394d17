"""The hot paths in the OpenAPI document: what we read of a request; the rest passes through.

`page` shows the document to people. It is one file without scripts that loads nothing: a gateway
inside a network has no way out for a viewer from elsewhere, and no reason to trust one.
"""

from html import escape
from typing import Any

_ERROR = {
    "description": "OpenAI-style error",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["error"],
                "properties": {
                    "error": {
                        "type": "object",
                        "required": ["message", "type", "param", "code"],
                        "properties": {
                            "message": {"type": "string"},
                            "type": {"type": "string"},
                            "param": {"type": ["string", "null"]},
                            "code": {"type": ["string", "null"]},
                        },
                    }
                },
            }
        }
    },
}

_COMMON = {
    "model": {"type": "string", "description": "A logical model of `GET /v1/models`"},
    "stream": {"type": "boolean"},
    "stream_options": {
        "type": "object",
        "properties": {"include_usage": {"type": "boolean"}},
    },
    "max_tokens": {"type": "integer", "minimum": 1},
    "n": {"type": "integer", "minimum": 1},
    "user": {"type": "string"},
}

_HOT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "/v1/chat/completions": (
        "Chat completion",
        "messages",
        {"messages": {"type": "array", "minItems": 1, "items": {"type": "object"}}},
    ),
    "/v1/completions": (
        "Completion",
        "prompt",
        {"prompt": {"type": ["string", "array"]}},
    ),
    "/v1/embeddings": (
        "Embeddings",
        "input",
        {"input": {"type": ["string", "array"]}},
    ),
    "/v1/messages": (
        "Anthropic's Messages, as a chat completion",
        "messages",
        {
            "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
            "system": {"type": ["string", "array"]},
            "tools": {"type": "array", "items": {"type": "object"}},
        },
    ),
    "/v1/messages/count_tokens": (
        "How many tokens such a request may have (an estimate)",
        "messages",
        {"messages": {"type": "array", "minItems": 1, "items": {"type": "object"}}},
    ),
    "/v1/responses": (
        "OpenAI's Responses, as a chat completion; nothing is kept",
        "input",
        {
            "input": {"type": ["string", "array"]},
            "instructions": {"type": ["string", "null"]},
            "max_output_tokens": {"type": ["integer", "null"], "minimum": 1},
            "tools": {"type": "array", "items": {"type": "object"}},
        },
    ),
}
_SHARED = {  # of the members that all paths have, those of a path that does not have all
    "/v1/embeddings": ("model", "user"),
    "/v1/messages": ("model", "stream", "max_tokens"),
    "/v1/messages/count_tokens": ("model",),
    "/v1/responses": ("model", "stream", "user"),
}
_REQUIRED = {"/v1/messages": ["max_tokens"]}
_OF_ANTHROPIC = {
    "description": "Anthropic-style error",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["type", "error", "request_id"],
                "properties": {
                    "type": {"const": "error"},
                    "error": {
                        "type": "object",
                        "required": ["type", "message"],
                        "properties": {
                            "type": {"type": "string"},
                            "message": {"type": "string"},
                        },
                    },
                    "request_id": {"type": "string"},
                },
            }
        }
    },
}

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # a browser loads nothing for `page`
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; margin: 2rem; }}
td {{ padding: 0 1.5rem 0 0; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>The API is OpenAI's, and Anthropic's Messages. Its schema for tools is
<a href="/openapi.json">/openapi.json</a>; requests marked with <i>key</i> carry
<code>Authorization: Bearer gw_...</code>.</p>
<table>
{rows}
</table>
</body>
</html>
"""


def described(document: dict[str, Any]) -> dict[str, Any]:
    """Add the hot paths and the key to FastAPI's own document."""
    paths = document.setdefault("paths", {})
    for path, (summary, required, prompt) in _HOT.items():
        paths[path] = {"post": _operation(path, summary, required, prompt)}
    for path, operations in paths.items():
        if path.startswith("/v1/"):
            for operation in operations.values():
                operation["security"] = [{"key": []}]
    document.setdefault("components", {})["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer"}
    }
    return document


def page(document: dict[str, Any]) -> str:
    """The document's paths as a table, with the address of the whole."""
    rows = [
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{escape(operation.get('summary', ''))}</td>"
        f"<td>{'key' if operation.get('security') else ''}</td></tr>"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]
    return _PAGE.format(title=escape(document["info"]["title"]), rows="\n".join(rows))


def _operation(path: str, summary: str, required: str, prompt: dict[str, Any]) -> dict[str, Any]:
    common = {name: _COMMON[name] for name in _SHARED.get(path, _COMMON)}
    error = _OF_ANTHROPIC if path.startswith("/v1/messages") else _ERROR
    return {
        "tags": ["inference"],
        "summary": summary,
        "operationId": path.strip("/").replace("/", "_"),
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["model", required, *_REQUIRED.get(path, ())],
                        "properties": {**common, **prompt},
                        "additionalProperties": True,
                    }
                }
            },
        },
        "responses": {
            "200": {
                "description": "The target's answer; server-sent events if streamed",
                "content": {"application/json": {}, "text/event-stream": {}},
            },
            "4XX": error,
            "5XX": error,
        },
    }
