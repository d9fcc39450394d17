"""Routes of all operations below `/v1/organization`, with OpenAPI from their inputs."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.routing import BaseRoute, Route

from gateway.control.admin.executor import AdminExecutor
from gateway.control.admin.verb import PREFIX, AdminOperation
from gateway.control.operations import OPERATIONS

_UNKEPT = {"cache-control": "no-store"}  # a new key's token is among the answers


def admin_routes(desk: AdminExecutor) -> list[Route]:
    """Return the serving routes. FastAPI routes would take a fifth of a worker's start."""
    return [
        Route(PREFIX + verb.path, _endpoint(desk, verb), methods=[verb.method], name=verb.name)
        for verb in OPERATIONS
    ]


def described_routes() -> list[BaseRoute]:
    """Return routes for the OpenAPI document only, built when it is first read."""
    router = APIRouter(prefix=PREFIX, tags=["organization"])
    for verb in OPERATIONS:
        router.add_api_route(
            verb.path,
            _answer_nothing,
            methods=[verb.method],
            summary=verb.summary,
            operation_id=verb.name,
            openapi_extra=describe_input(verb),
            response_model=dict[str, Any],
        )
    return list(router.routes)


# A docstring would appear in the OpenAPI description.
async def _answer_nothing() -> None: ...


def describe_input(verb: AdminOperation[Any]) -> dict[str, Any]:
    """Return the OpenAPI description of the query parameters or the body."""
    schema = msgspec.json.schema(verb.given)
    shape = _whole(schema["$defs"][verb.given.__name__], schema["$defs"])
    if not verb.in_query:
        shape["additionalProperties"] = False
        return {
            "requestBody": {"required": True, "content": {"application/json": {"schema": shape}}}
        }
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": name in shape["required"],
                "schema": property_,
            }
            for name, property_ in shape["properties"].items()
        ]
    }


def _whole(part: Any, named: dict[str, Any]) -> Any:
    """Return the schema part with references inlined; the document has no place for them."""
    if isinstance(part, list):
        return [_whole(item, named) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _whole(named[part["$ref"].rpartition("/")[2]], named)
    return {name: _whole(item, named) for name, item in part.items()}


def _endpoint(
    desk: AdminExecutor, verb: AdminOperation[Any]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        told = await desk.answer(verb, request)
        return Response(told, media_type="application/json", headers=_UNKEPT)

    return answer
