"""Terms of content: what rules say of kinds, joined and compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.content import (
    ContentAction,
    content_terms,
    is_as_strict,
    join_terms,
    kinds_under,
)

ACTIONS = st.dictionaries(
    st.sampled_from(["card", "email", "unknown"]),
    st.sampled_from([action.value for action in ContentAction]),
)


def test_what_cannot_be_read_stays_inside_unless_stated() -> None:
    assert content_terms({}) == ()
    assert content_terms({"card": "mask"}) == (("card", "mask"), ("unknown", "keep_inside"))
    assert content_terms({"unknown": "record"}) == (("unknown", "record"),)


@given(ACTIONS, ACTIONS)
def test_joined_terms_are_as_strict_as_each(first, second) -> None:
    terms = content_terms(first), content_terms(second)
    joined = join_terms(terms)
    assert all(is_as_strict(joined, each, inside=False) for each in terms)


@pytest.mark.parametrize(
    ("upper", "lower", "inside", "expected"),
    [
        ({"card": "refuse"}, {"card": "mask"}, False, True),
        ({"card": "mask"}, {"card": "keep_inside"}, False, False),
        ({}, {"card": "keep_inside"}, True, True), ({}, {"card": "mask"}, True, False),
        ({}, {"card": "record", "unknown": "record"}, False, True),
    ],
)  # fmt: skip
def test_a_rule_above_protects_or_does_not(upper, lower, inside, expected) -> None:
    assert is_as_strict(content_terms(upper), content_terms(lower), inside=inside) is expected


def test_kinds_of_an_action_are_those_that_were_found() -> None:
    terms = content_terms({"card": "mask", "email": "mask", "ip": "refuse"})
    assert kinds_under(terms, ContentAction.MASK, {"card", "ip"}) == ["card"]
