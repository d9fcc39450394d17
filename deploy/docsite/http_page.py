"""The page `reference/http.md`: every path, the scope that it needs, and its input."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from deploy.docsite.markdown import code, head, table
from gateway.control.access import OTHER_ROUTES
from gateway.control.admin.verb import PREFIX, AdminOperation
from gateway.control.operations import OPERATIONS
from gateway.worker.openapi_bodies import INFERENCE_PATHS
from gateway.worker.unserved_paths import UNSERVED

# Sentences by path prefix. The longest prefix that matches is used.
ABOUT: Final = {
    "/": "Name, version of the API and links, for a browser.",
    "/health": "200 while the worker answers. It depends on no database and no provider.",
    "/healthz": "The same, under the name that Kubernetes uses.",
    "/readyz": "200 when the host takes requests, else 503 with the reasons.",
    "/metrics": "Prometheus metrics of the host ([list](metrics.md)).",
    "/docs": "This list as a page without scripts.",
    "/openapi.json": "OpenAPI 3.1 of the running version, with JSON Schemas of the bodies.",
    "/v1/responses/": "A stored response: read, delete, cancel, list its input.",
    "/v1/chat/completions": "A stored chat completion: list, read, change its metadata, delete.",
    "/v1/conversations": "Conversations and their items, as OpenAI's.",
    "/v1/models": "Models that this key may use, with context, features and prices.",
    "/model/info": "The models in LiteLLM's shape.",
    "/v1/model/info": "The models in LiteLLM's shape.",
    "/v1/files": "Files with the purpose `batch`: upload, list, read, delete.",
    "/v1/batches": "Batches in OpenAI's form: create, list, read, cancel.",
    "/v1/messages/batches": "Batches in Anthropic's form.",
    f"{PREFIX}/usage": "What was used by time, model, key or project, in OpenAI's shape.",
    f"{PREFIX}/costs": "Dollars by time, project and line item.",
}

INPUTS: Final = (
    "Each does the same as its command. A `GET` takes its input in the query, all others in a JSON "
    "body. A member with `?` may be left out."
)


def text() -> str:
    """Return the text of the page."""
    return "\n\n".join([
        head(
            "HTTP API",
            "A key is sent as `Authorization: Bearer`, `x-api-key` or `api-key`. "
            "`GET /openapi.json` of a running gateway has the bodies as JSON Schema. "
            "What each path accepts of its vendor's API: [endpoints](endpoints.md). "
            "Errors: [errors](errors.md). Headers: [headers](headers.md).",
        ),
        "## Paths that models answer",
        table(("path", "does", "required members", "streams"), _inference()),
        "## Other paths for applications",
        table(("path", "scope of the key", "does"), _others()),
        "## Operations",
        INPUTS,
        table(("path", "scope", "command", "input", "does"), map(_operation, OPERATIONS)),
        "## Paths of known APIs that are not served",
        "They answer 404 with the code `endpoint_not_served` and this sentence.",
        table(("path", "reason"), ((_readable(item.pattern.pattern), item.reason)
                                   for item in UNSERVED)),
    ]) + "\n"  # fmt: skip


def about(path: str) -> str:
    """Return the sentence on a path. Raises: `KeyError` when `ABOUT` has no sentence for it."""
    fitting = [known for known in ABOUT if path == known or (
        known != "/" and path.startswith(known.rstrip("/") + "/"))]  # fmt: skip
    if not fitting:
        raise KeyError(f"{path}: write a sentence for it into ABOUT of deploy/docsite/http_page.py")
    return ABOUT[max(fitting, key=len)]


def _inference() -> Iterator[tuple[str, str, str, str]]:
    for path, described in INFERENCE_PATHS.items():
        body = described.body(8)
        required = ", ".join(code(name) for name in body.get("required", ()))
        yield code(f"POST {path}"), described.summary, required, "yes" if described.streamed else ""


def _others() -> Iterator[tuple[str, str, str]]:
    for name, scope in OTHER_ROUTES.items():
        path = name.partition(" ")[2]
        if path not in INFERENCE_PATHS or not name.startswith("POST "):
            told = "no key needed" if scope == "public" else code(scope)
            yield code(name), told, about(path)


def _operation(operation: AdminOperation[Any]) -> tuple[str, str, str, str, str]:
    command = f"breakeven {operation.command}" if operation.command else ""
    members = ", ".join(
        code(field.encode_name + ("" if field.required else "?"))
        for field in msgspec.structs.fields(operation.given)
    )
    path = code(f"{operation.method} {PREFIX}{operation.path}")
    return path, code(operation.scope), code(command), members, operation.summary


def _readable(pattern: str) -> str:
    """Return a regular expression of paths as readable text."""
    short = pattern.removesuffix("(?:/.*)?").replace("(?:", "(").replace("\\.", ".")
    return code(short.replace(".*", "...").replace("[^/]+", "NAME"))
