"""Cards of models, for both kinds of clients."""

from gateway.request.model_list import anthropic_cards, cards


def test_openais_list() -> None:
    assert cards(["a"], 1_700_000_000) == {
        "object": "list",
        "data": [{"id": "a", "object": "model", "created": 1_700_000_000, "owned_by": "breakeven"}],
    }


def test_anthropics_list_is_one_page() -> None:
    listed = anthropic_cards(["a", "b"], 1_700_000_000)
    assert listed["data"][0] == {
        "type": "model",
        "id": "a",
        "display_name": "a",
        "created_at": "2023-11-14T22:13:20Z",
        "lifecycle": "active",
    }
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "b", False)
    empty = anthropic_cards([], 0)
    assert (empty["data"], empty["first_id"], empty["last_id"]) == ([], None, None)
