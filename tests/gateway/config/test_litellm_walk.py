"""LiteLLM's walk through fallbacks, and stages of ours that ask the same in the same order."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.litellm_walk import (
    CAUSES,
    CONTENT_POLICY,
    CONTEXT,
    FAILURE,
    AskedGroup,
    FallbackWalk,
    plan_stages,
    staged_asks,
)

NAMES = "abcd"
TABLES = st.dictionaries(
    st.sampled_from([*NAMES, "*"]), st.lists(st.sampled_from(NAMES), max_size=3), max_size=4
)
WALKS = st.builds(
    lambda orders, general, context, policy, depth: FallbackWalk(
        lambda name: orders.get(name, 1),
        {FAILURE: general, CONTEXT: context, CONTENT_POLICY: policy},
        depth,
    ),
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2)),
    TABLES,
    TABLES,
    st.just({}),
    st.integers(0, 5),
)


def asked(walk: FallbackWalk, errors: dict[AskedGroup, str]) -> list[AskedGroup]:
    """Return whom LiteLLM asks for `a`, where each group has its error; a failure by default."""
    told: list[str] = []
    while True:
        groups = walk.asks("a", told)
        causes = [errors.get(group, FAILURE) for group in groups]
        if causes[: len(told) + 1] == told:
            return list(dict.fromkeys(groups))
        told = causes[: len(told) + 1]


@given(WALKS)
def test_stages_ask_as_litellm_does_or_the_difference_is_told(walk) -> None:
    stages, differing = plan_stages(walk, "a")
    groups = list(dict.fromkeys([AskedGroup("a"), *(stage.asked for stage in stages)]))
    for cause in CAUSES:
        errors = dict.fromkeys(groups, cause)
        assert staged_asks("a", stages, errors) == list(dict.fromkeys(walk.asks("a", (), cause)))
    if differing or len(groups) > 4:
        return
    for causes in product(CAUSES, repeat=len(groups)):
        errors = dict(zip(groups, causes, strict=True))
        assert staged_asks("a", stages, errors) == asked(walk, errors)


@pytest.mark.parametrize(
    ("general", "depth", "models"),
    [
        ({"a": "b", "b": "c", "c": "d"}, 5, "abcd"),
        ({"a": "bc", "b": "d"}, 5, "abdc"),
        ({"a": "b", "b": "a"}, 5, "ab"),
        ({"a": "b", "b": "c", "c": "d"}, 2, "abc"),
        ({"a": "bcd"}, 1, "abcd"),
        ({"*": "c", "a": "b"}, 5, "ab"),  # who has a list of its own has no part in the general one
        ({"*": "bc"}, 5, "abc"),
    ],
)
def test_whom_litellms_proxy_asked_after_failures(general, depth, models) -> None:
    """Seen at LiteLLM 1.106.2 by `make bench-litellm-beside`."""
    walk = FallbackWalk(
        lambda _: 1, {FAILURE: {name: [*way] for name, way in general.items()}}, depth
    )
    assert [group.model for group in walk.asks("a", ())] == [*models]


def test_an_order_that_no_stages_have_is_told_by_one_mixture_of_errors() -> None:
    walk = FallbackWalk(lambda _: 1, {FAILURE: {"a": ["b"]}, CONTEXT: {"b": ["c"]}})
    assert plan_stages(walk, "a")[1] == ["a: failure", "b: context", "c: failure"]
