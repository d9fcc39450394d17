"""The verbs as routes below `/v1/organization`, described by what they are given."""

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
    """Return the routes that answer; FastAPI takes a fifth of a worker's start for them."""
    return [
        Route(PREFIX + verb.path, _endpoint(desk, verb), methods=[verb.method], name=verb.name)
        for verb in OPERATIONS
    ]


def described_routes() -> list[BaseRoute]:
    """Return the same for the API's description, once somebody reads it; these answer nothing."""
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


# A docstring would be in the description.
async def _answer_nothing() -> None: ...


def describe_input(verb: AdminOperation[Any]) -> dict[str, Any]:
    """The query's parameters, or the body."""
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
    """Without references: the document has no other place for what they name."""
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
