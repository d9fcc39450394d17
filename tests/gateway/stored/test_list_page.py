"""Pages as OpenAI's clients read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.stored.list_page import list_object, page_of


@given(count=st.integers(0, 12), limit=st.integers(1, 5), order=st.sampled_from(["asc", "desc"]))
def test_pages_go_through_the_whole_list_once(count: int, limit: int, order) -> None:
    objects = [{"id": f"i{number}"} for number in range(count)]
    seen, after = [], None
    while True:
        page = page_of(objects, after=after, limit=limit, order=order)
        seen += page["data"]
        assert len(page["data"]) <= limit
        if not page["has_more"]:
            break
        after = page["last_id"]
    assert seen == (objects if order == "asc" else objects[::-1])


def test_an_empty_page() -> None:
    empty = {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    assert list_object([], more=False) == empty


def test_a_place_that_is_none() -> None:
    with pytest.raises(RequestError) as raised:
        page_of([{"id": "a"}, {}], after="b", limit=1, order="asc")
    assert (raised.value.row.status, raised.value.param) == (404, "after")
