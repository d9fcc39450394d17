"""Each verb is described by what it is given."""

from typing import Annotated

import msgspec

from gateway.control.admin import routes
from gateway.control.admin.routes import InputDescription, describe_input
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


def test_a_description_is_made_when_it_is_read_and_once(monkeypatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(
        routes, "describe_input", lambda verb: made.append(verb.name) or describe_input(verb)
    )
    description = InputDescription(verb("GET"))
    assert made == []
    assert (dict(description), len(description)) == (describe_input(verb("GET")), 1)
    assert made == ["x"]


def test_all_of_them_are_in_the_openapi_document(stack) -> None:
    paths = stack.get("/openapi.json").json()["paths"]
    for named in OPERATIONS:
        operation = paths[PREFIX + named.path][named.method.lower()]
        assert (operation["operationId"], operation["summary"]) == (named.name, named.summary)
        assert operation["security"]
        assert {"200", "4XX", "5XX"} <= set(operation["responses"])
    assert "$ref" not in str({path: paths[path] for path in paths if path.startswith(PREFIX)})
