"""Cards of models, for both kinds of clients."""

import pytest

from gateway.errors import RequestError
from gateway.request.model_list import ModelPage, ShownLimits, anthropic_cards, card


def test_openais_card() -> None:
    assert card("a", 1_700_000_000) == {
        "id": "a", "object": "model", "created": 1_700_000_000, "owned_by": "breakeven",
    }  # fmt: skip


def test_anthropics_list_is_one_page_where_none_is_asked_for() -> None:
    listed = anthropic_cards(["a", "b"], 1_700_000_000)
    assert listed["data"][0] == {
        "type": "model",
        "id": "a",
        "display_name": "a",
        "created_at": "2023-11-14T22:13:20Z",
        "lifecycle": "active",
        "max_input_tokens": None,
        "max_tokens": None,
    }
    known = anthropic_cards(["a"], 0, limits_of=lambda name: ShownLimits(len(name), 2))
    assert (known["data"][0]["max_input_tokens"], known["data"][0]["max_tokens"]) == (1, 2)
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "b", False)
    empty = anthropic_cards([], 0)
    assert (empty["data"], empty["first_id"], empty["last_id"]) == ([], None, None)


NAMES = [f"m{number}" for number in range(7)]


def test_pages_hold_every_model_once_in_both_directions() -> None:
    """Red before: each page was the whole list, and `limit` had no effect."""
    for limit in range(1, 9):
        for member, end, way in (("after_id", "last_id", 1), ("before_id", "first_id", -1)):
            seen: list[str] = []
            page = anthropic_cards(NAMES, 0, ModelPage(limit))
            if way < 0:
                page = anthropic_cards(NAMES, 0, ModelPage(limit, before_id="m6"))
            while True:
                ids = [item["id"] for item in page["data"]]
                assert len(ids) <= limit
                assert (page["first_id"], page["last_id"]) == (ids[0], ids[-1])
                seen = seen + ids if way > 0 else ids + seen
                if not page["has_more"]:
                    break
                page = anthropic_cards(NAMES, 0, ModelPage(limit, **{member: page[end]}))
            assert seen == (NAMES if way > 0 else NAMES[:-1])


def test_an_id_that_is_not_listed_is_refused_and_the_last_has_nothing_behind_it() -> None:
    with pytest.raises(RequestError, match="after_id"):
        anthropic_cards(NAMES, 0, ModelPage(after_id="gone"))
    empty = anthropic_cards(NAMES, 0, ModelPage(after_id="m6"))
    assert (empty["data"], empty["has_more"], empty["first_id"]) == ([], False, None)
    between = anthropic_cards(NAMES, 0, ModelPage(after_id="m1", before_id="m4"))
    assert [item["id"] for item in between["data"]] == ["m2", "m3"]
