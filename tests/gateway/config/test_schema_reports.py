"""Sections on what the host says of itself: words that are none are refused by name."""

import pytest

from gateway.config.settings import ConfigError, parse


def test_lines_for_people_and_warnings_are_the_default() -> None:
    logs = parse("{}", name="test").logs
    assert (logs.format, logs.level) == ("text", "warning")


@pytest.mark.parametrize("line", ["format: yaml", "level: loud", "levle: info"])
def test_an_unknown_word_is_named(line) -> None:
    with pytest.raises(ConfigError, match=rf"logs\.{line.partition(':')[0]}"):
        parse(f"logs: {{{line}}}", name="test")
