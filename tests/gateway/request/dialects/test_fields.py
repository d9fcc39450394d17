"""A wrong type is told by its place."""

from collections.abc import Callable

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.request.dialects import fields


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fields.text(5, "a.b"), "`a.b` must be a string."),
        (lambda: fields.optional_text([], "a"), "`a` must be a string."),
        (lambda: fields.mapping([], "a"), "`a` must be an object."),
        (lambda: list(fields.iterate_objects({}, "a")), "`a` must be a list."),
        (lambda: list(fields.iterate_objects([{}, 1], "a")), "`a[1]` must be an object."),
    ],
)
def test_a_wrong_type_names_its_place(call: Callable[[], object], said: str) -> None:
    with pytest.raises(RequestError) as caught:
        call()
    assert caught.value.message == said
    assert caught.value.param == said.split("`")[1]
    assert caught.value.row.status == 400


def test_what_is_right_is_handed_on() -> None:
    assert fields.text("x", "a") == "x"
    assert fields.optional_text(None, "a") is None
    assert list(fields.iterate_objects([{"b": 1}], "a")) == [("a[0]", {"b": 1})]
    assert fields.decode_whole_member(decode_members(b'{"a": {"b": [1]}}'), "a") == {"b": [1]}
    assert fields.decode_whole_member(decode_members(b"{}"), "a") is None


@pytest.mark.parametrize("value", ["null", "[]", "{}", "false"])
def test_what_says_nothing_is_not_refused(value: str) -> None:
    fields.refuse_members(decode_members(f'{{"a": {value}}}'.encode()), {"a": "no."})
    with pytest.raises(RequestError, match="`a`: no\\."):
        fields.refuse_members(decode_members(b'{"a": 1}'), {"a": "no."})


def test_metadata() -> None:
    assert fields.metadata_of({}) == fields.metadata_of({"metadata": None}) == {}
    assert fields.metadata_of({"metadata": {"a": "b"}}) == {"a": "b"}
    for given in ([], {"a": 1}, {"a" * 65: ""}, {"a": "b" * 513}, {str(n): "" for n in range(17)}):
        with pytest.raises(RequestError):
            fields.metadata_of({"metadata": given})
