"""The verbs as routes below `/v1/organization`, described by what they are given."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import msgspec
from fastapi import APIRouter, Request, Response

from gateway.control.admin.executor import AdminExecutor
from gateway.control.admin.verb import PREFIX, AdminOperation
from gateway.control.operations import OPERATIONS

_UNKEPT = {"cache-control": "no-store"}  # a new key's token is among the answers


def admin_router(desk: AdminExecutor) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["organization"])
    for verb in OPERATIONS:
        router.add_api_route(
            verb.path,
            _endpoint(desk, verb),
            methods=[verb.method],
            summary=verb.summary,
            operation_id=verb.name,
            openapi_extra=cast("dict[str, Any]", InputDescription(verb)),
            response_model=dict[str, Any],
        )
    return router


class InputDescription(Mapping[str, Any]):
    """What `describe_input` says, once somebody reads the API's description.

    To describe all operations takes a worker a tenth of what it takes to start.
    """

    def __init__(self, verb: AdminOperation[Any]) -> None:
        self._verb = verb

    @cached_property
    def _described(self) -> dict[str, Any]:
        return describe_input(self._verb)

    def __getitem__(self, key: str) -> Any:
        return self._described[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)


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
