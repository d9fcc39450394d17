"""Each verb is described by what it is given."""

from typing import Annotated

import msgspec

from gateway.access import ROUTES
from gateway.admin.routes import VERBS, described
from gateway.admin.verb import PREFIX, Verb


class Given(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(description="whose")]
    limit: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3


def verb(method: str) -> Verb[Given]:
    return Verb("x", method, "/x", "An x", Given, lambda place, given: {})


def test_a_query_is_described_member_by_member() -> None:
    name, limit = described(verb("GET"))["parameters"]
    assert (name["name"], name["in"], name["required"]) == ("name", "query", True)
    assert name["schema"]["description"] == "whose"
    assert (limit["required"], limit["schema"]["maximum"]) == (False, 9)


def test_a_body_has_no_other_members() -> None:
    body = described(verb("POST"))["requestBody"]["content"]["application/json"]["schema"]
    assert (body["required"], body["additionalProperties"]) == (["name"], False)


def test_all_of_them_are_in_the_openapi_document(stack) -> None:
    paths = stack.get("/openapi.json").json()["paths"]
    for one in VERBS:
        operation = paths[PREFIX + one.path][one.method.lower()]
        assert (operation["operationId"], operation["summary"]) == (one.name, one.summary)
        assert operation["security"]
        assert {"200", "4XX", "5XX"} <= set(operation["responses"])
    assert "$ref" not in str({path: paths[path] for path in paths if path.startswith(PREFIX)})


def test_each_has_a_name_a_path_and_a_line_in_the_table() -> None:
    names = [verb.name for verb in VERBS]
    asked = [f"{verb.method} {PREFIX}{verb.path}" for verb in VERBS]
    assert len({*names}) == len({*asked}) == len(VERBS)
    assert {*asked} <= ROUTES.keys()
    assert all(verb.summary and not verb.summary.endswith(".") for verb in VERBS)


def test_what_changes_something_asks_for_more_than_to_look() -> None:
    """A verb that is only given a question may be a POST, too, for the length of it."""
    asks = {
        "policies_check",
        "policies_diff",
        "policies_simulate",
        "policies_simulate_cancel",
        "prices_diff",
        "invoices_compare",
    }
    for verb in VERBS:
        scope = ROUTES[f"{verb.method} {PREFIX}{verb.path}"]
        if verb.method == "GET" or verb.name in asks:
            assert not scope.endswith(":apply"), verb.name
        else:
            assert scope.endswith(":apply") or scope in ("keys", "keys:all"), verb.name
