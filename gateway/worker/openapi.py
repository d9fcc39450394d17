"""Inference paths in the OpenAPI document: the members that the gateway reads.

`page` renders the document for people: one file without scripts that loads nothing. A gateway in an
internal network cannot reach a viewer from a CDN, and has no reason to trust one.
"""

from html import escape
from typing import Any

from backends.answers import TEXTS
from gateway.kinds.spec import PathDescription
from gateway.worker.openapi_bodies import INFERENCE_PATHS

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

_EVENT = {
    "type": "object",
    "required": ["data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
_CARD = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "object": {"const": "model"}},
}
_OWN: dict[str, dict[str, Any]] = {  # of FastAPI's paths: what their functions lack
    "/metrics": {"200": {"text/plain": {"schema": {"type": "string"}}}},
    "/v1/models": {
        "200": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["data"],
                    "properties": {"data": {"type": "array", "items": _CARD}},
                }
            }
        }
    },
    "/v1/models/{model}": {"200": {"application/json": {"schema": _CARD}}},
    "/readyz": {"503": {"application/json": {"schema": {"type": "object"}}}},
}
_NAMED = {
    "x-request-id": {
        "description": "Names the request, also in logs and in the ledger",
        "required": True,
        "schema": {"type": "string", "pattern": "^req_[0-9a-f]+$"},
    }
}
_KEYS: dict[str, dict[str, str]] = {
    "key": {"type": "http", "scheme": "bearer"},
    **{name: {"type": "apiKey", "in": "header", "name": name} for name in ("x-api-key", "api-key")},
}
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

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # `page` loads nothing
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
<a href="openapi.json">/openapi.json</a>; requests marked with <i>key</i> carry
<code>Authorization: Bearer gw_...</code>.</p>
<table>
{rows}
</table>
</body>
</html>
"""


def describe_api(document: dict[str, Any], max_n: int = 8) -> dict[str, Any]:
    """Add the inference paths, the key scheme and the errors to FastAPI's document.

    `max_n` is `server.max_n`.
    """
    paths = document.setdefault("paths", {})
    for path, content in _OWN.items():
        for operation in paths.get(path, {}).values():
            for status, told in content.items():
                response = operation.setdefault("responses", {}).setdefault(status, {})
                response.setdefault("description", "What is missing")
                response["content"] = told
    for path, inference in INFERENCE_PATHS.items():
        paths.setdefault(path, {})["post"] = _operation(path, inference, max_n)
    for path, operations in paths.items():
        for operation in operations.values():
            responses = operation.setdefault("responses", {})
            responses.pop("422", None)  # FastAPI's error format, which this API does not use
            if path.startswith("/v1/") or path in INFERENCE_PATHS:
                operation["security"] = [{name: []} for name in _KEYS]
                error = _OF_ANTHROPIC if path.startswith("/v1/messages") else _ERROR
                responses |= {"4XX": error, "5XX": error}
            for status, response in responses.items():
                responses[status] = {**response, "headers": _NAMED}
    components = document.setdefault("components", {})
    components["securitySchemes"] = _KEYS
    components.pop("schemas", None)  # of the same format
    return document


def page(document: dict[str, Any]) -> str:
    """Render the document's paths as an HTML table with a link to the full document."""
    rows = [
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{escape(operation.get('summary', ''))}</td>"
        f"<td>{'key' if operation.get('security') else ''}</td></tr>"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]
    return _PAGE.format(title=escape(document["info"]["title"]), rows="\n".join(rows))


def _operation(path: str, described: PathDescription, max_n: int) -> dict[str, Any]:
    content: dict[str, Any] = {described.media: {"schema": described.answer}}
    sent = "multipart/form-data" if described.form else "application/json"
    if described.texts:
        content |= {media: {"schema": {"type": "string"}} for media in sorted(TEXTS)}
    if described.streamed:
        content["text/event-stream"] = {"schema": _EVENT}
    return {
        "tags": ["inference"],
        "summary": described.summary,
        "operationId": path.strip("/").replace("/", "_"),
        "requestBody": {"required": True, "content": {sent: {"schema": described.body(max_n)}}},
        "responses": {
            "200": {
                "description": "The target's answer; server-sent events if streamed",
                "content": content,
            },
        },
    }
