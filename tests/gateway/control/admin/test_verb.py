"""A verb is a function with its place over HTTP and on the command line."""

from gateway.control.admin.verb import NoInput, list_document, verb


def test_a_function_becomes_a_verb_of_its_name() -> None:
    @verb("GET /things", "operations", "things list", "All things", NoInput)
    def things_list(_place, _given):
        return {}

    assert (things_list.name, things_list.method, things_list.path) == (
        "things_list",
        "GET",
        "/things",
    )
    assert things_list.in_query


def test_a_list_has_openais_shape() -> None:
    assert list_document([{"a": 1}]) == {"object": "list", "data": [{"a": 1}]}
