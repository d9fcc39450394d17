"""Patterns of an operator's own."""

import pytest

from gateway.config.content_patterns import PatternError, compile_patterns, compile_signs


@pytest.mark.parametrize("pattern", ["(?<=a)b", r"(a)\1", "(", ""])
def test_what_the_engine_does_not_take_is_told(pattern) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        compile_patterns([pattern])


def test_signs_and_patterns_tell_where_they_match() -> None:
    found = []
    note = lambda sign, start, end, *_: found.append((sign, start, end))  # noqa: E731  (a callback)
    compile_patterns(["f\u00fcr \\d+", "x"]).scan(
        ["\u00fcx f\u00fcr 12".encode()], match_event_handler=note
    )
    assert (0, 4, 11) in found
    found.clear()
    compile_signs(["b"]).scan(b"abc", match_event_handler=note)
    assert [(sign, end) for sign, _, end in found] == [(0, 2)]
