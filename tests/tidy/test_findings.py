"""A failure names every finding."""

import pytest
from findings import assert_none


def test_every_finding_is_named() -> None:
    names = [f"file{number}.py: fault" for number in range(40)]
    with pytest.raises(AssertionError) as failure:
        assert_none(iter(names))
    assert str(failure.value).splitlines()[:41] == ["40 found:", *names]


def test_what_to_do_is_said_last() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_none(["a.py: fault"], "write it")
    assert str(failure.value).splitlines()[-1] == "Fix: write it"


def test_nothing_found_is_no_failure() -> None:
    assert_none([], "write it")
