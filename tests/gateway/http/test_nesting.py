"""Levels are counted as a reader would, whatever strings hold."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.nesting import LEVELS_LIMIT, is_too_deep

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('[]{}"\\ä,: ', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text('[{"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


def levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(levels, inner), default=0) if isinstance(value, dict | list) else 0


@given(VALUES, st.booleans())
def test_levels_are_those_of_the_value(value, is_ascii) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode()
    depth = levels(value)
    assert not is_too_deep(text, depth)
    assert depth == 0 or is_too_deep(text, depth - 1)


@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_the_limit_is_the_last_level_that_is_read(opened: str) -> None:
    closed = "]" if opened == "[" else "}"
    for count, is_deep in ((LEVELS_LIMIT, False), (LEVELS_LIMIT + 1, True), (200_000, True)):
        text = opened * count + "1" + closed * count
        assert is_too_deep(text.encode()) is is_deep


def test_many_beside_each_other_are_no_levels() -> None:
    assert not is_too_deep(b'{"a":[' + b"[1,2]," * 100_000 + b'"' + b"[" * 1000 + b'"]}')
