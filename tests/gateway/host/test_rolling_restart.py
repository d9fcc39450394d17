"""What is waited for while an engine is taken out; the rest is tried with the verbs themselves."""

import pytest

from gateway.host.rolling_restart import DrainTimeout, wait_until_done


def test_it_tells_what_is_missing_until_nothing_is():
    left, told = ["two", "one"], []
    wait_until_done(lambda: left.pop(0) if left else "", 10.0, told.append)
    assert told == ["two", "one"]


def test_it_gives_up_and_says_what_was_missing():
    with pytest.raises(DrainTimeout, match="not done in time: loading"):
        wait_until_done(lambda: "loading", 0.0, lambda _: None)
