"""Ids of items, and whose they are."""

import pytest

from gateway.request.store.response_items import (
    as_items,
    is_reference,
    items_of,
    name_items,
    referenced_ids,
    response_of,
)

NAME = "0123456789ab0123456789000001"


@pytest.mark.parametrize(
    ("given", "items"),
    [
        (None, []),
        ("hi", [{"type": "message", "role": "user", "content": "hi"}]),
        ([], []),
        ([{"id": "a"}], [{"id": "a"}]),
        (5, [5]),
    ],
)
def test_an_input_as_items(given, items) -> None:
    assert as_items(given) == items


def test_items_get_ids_that_lead_to_their_response() -> None:
    items = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "message", "id": "mine", "role": "user", "content": []},
        {"type": "of_tomorrow"},
        "no item",
    ]
    named = name_items(items, NAME)
    assert [item["id"] for item in named] == [
        f"msg_{NAME}_i0", f"msg_{NAME}_i1", f"fco_{NAME}_i2", "mine", f"item_{NAME}_i4",
    ]  # fmt: skip
    assert named[0]["content"] == [{"type": "input_text", "text": "hi"}]
    assert named[1]["content"] == [{"type": "output_text", "text": "ho", "annotations": []}]
    assert named[0]["status"] == "completed"
    assert {response_of(item["id"]) for item in (named[0], named[2], named[4])} == {f"resp_{NAME}"}
    assert name_items(items, NAME, keep_ids=False)[3]["id"] == f"msg_{NAME}_i3"


@pytest.mark.parametrize(
    "item_id", ["", "msg_1", f"msg_{NAME}", f"resp_{NAME}", f"msg_{NAME}_x", f"msg_{NAME}_0\n"]
)
def test_ids_that_are_of_no_response(item_id: str) -> None:
    assert response_of(item_id) is None


def test_items_of_a_stored_response() -> None:
    answer = {"id": "resp_7f", "output": [{"id": "b"}]}
    for keeps_ids, named in ((True, "a"), (False, "msg_7f_i0")):
        content = {"input": [{"id": "a"}], "response": answer, "keeps_ids": keeps_ids}
        assert [item["id"] for item in items_of(content)] == [named, "b"]
    nothing = {"input": None, "response": {"id": "resp_7f"}, "keeps_ids": True}
    assert list(items_of(nothing)) == []


def test_references() -> None:
    items = [
        {"type": "item_reference", "id": "a"}, {"id": "b"}, {"id": "a", "type": None},
        {"id": "c", "role": "user", "content": "x"}, {"type": "item_reference"}, {"id": 5}, "a",
    ]  # fmt: skip
    assert [is_reference(item) for item in items] == [True, True, True, False, False, False, False]
    assert referenced_ids(items) == ["a", "b"]
