"""Each verb is described by what it is given."""

from typing import Annotated, Any

import msgspec

from gateway.control.admin.routes import admin_routes, describe_input, described_routes
from gateway.control.admin.verb import PREFIX, AdminOperation
from gateway.control.operations import OPERATIONS


class Given(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(description="whose")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3


def verb(method: str) -> AdminOperation[Given]:
    return AdminOperation("x", method, "/x", "usage", None, "An x", Given, lambda place, given: {})


def test_a_query_is_described_member_by_member() -> None:
    name, limit = describe_input(verb("GET"))["parameters"]
    assert (name["name"], name["in"], name["required"]) == ("name", "query", True)
    assert name["schema"]["description"] == "whose"
    assert (limit["required"], limit["schema"]["maximum"]) == (False, 9)


def test_a_body_has_no_other_members() -> None:
    body = describe_input(verb("POST"))["requestBody"]["content"]["application/json"]["schema"]
    assert (body["required"], body["additionalProperties"]) == (["name"], False)


def test_each_operation_is_answered_where_it_is_described() -> None:
    desk: Any = None
    answering = {(route.path, *route.methods - {"HEAD"}) for route in admin_routes(desk)}
    assert answering == {(route.path, *route.methods) for route in described_routes()}
    assert len(answering) == len(OPERATIONS)


def test_all_of_them_are_in_the_openapi_document(stack) -> None:
    paths = stack.get("/openapi.json").json()["paths"]
    for named in OPERATIONS:
        operation = paths[PREFIX + named.path][named.method.lower()]
        assert (operation["operationId"], operation["summary"]) == (named.name, named.summary)
        assert operation["security"]
        assert {"200", "4XX", "5XX"} <= set(operation["responses"])
    assert "$ref" not in str({path: paths[path] for path in paths if path.startswith(PREFIX)})
