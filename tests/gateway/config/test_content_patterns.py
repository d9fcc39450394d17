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


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\bfalcon-\d+\b", "a falcon-17, xfalcon-18 and falcon-19x", ["falcon-17"]),
        (r"\w{3}-\d+", "see \u00e4bc-12", ["\u00e4bc-12"]),
        (r"\w+@corp", "an j\u00f6rg@corp now", ["j\u00f6rg@corp"]),
        (r"[\w.]+@corp\b", "an j\u00f6rg.x@corp now", ["j\u00f6rg.x@corp"]),
        ("\\bM\u00fcnster\\b", "in M\u00fcnster.", ["M\u00fcnster"]),
        ("\\b\u00dcber-\\d", "die \u00dcber-7", ["\u00dcber-7"]),
        (r"(?i)\bprojekt\b", "das PROJEKT, projekte", ["PROJEKT"]),
        ("(?i)\\bst\u00e4nder\\b", "der ST\u00c4NDER", ["ST\u00c4NDER"]),
        (r"\b\w+-x\b", "\u00e9t\u00e9-x", ["\u00e9t\u00e9-x"]),
        (r"EMP\d{6}\b", "EMP123456 EMP1234567", ["EMP123456"]),
        (r"\b(?:ab|cd)\d\b", "ab1 xab2 cd3", ["ab1", "cd3"]),
        (r"\W\d{4}\W", "a 1234, b", [" 1234,"]),
    ],
)  # fmt: skip
def test_ends_of_words_and_words_of_any_script_are_taken(pattern, text, found) -> None:
    data, longest = text.encode(), {}

    def note(_sign: int, start: int, end: int, *_: object) -> None:
        longest[start] = end

    compile_patterns([pattern]).scan([data], match_event_handler=note)
    assert [data[start:end].decode() for start, end in sorted(longest.items())] == found
