"""How often a pattern repeats, read off it in no more time than its length."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds import patterns as patterns_module
from gateway.kinds.patterns import (
    TEXT,
    count_repeats,
    has_repeated_groups,
    max_repeat,
    nested_schemas,
    patterns,
    strip_quoted,
)


@pytest.mark.parametrize(
    ("pattern", "times"),
    [
        ("abc", 1),
        ("a{3}b{4}", 4),
        ("(a{3}b{4}){5}", 20),
        ("((a{3}){4}b){5}c{50}", 60),
        ("(a{3}){2}(b{7}){1,2}", 14),
        ("a{2}{3}", 6),
        ("(?:a{3}){4}", 12),
        ("((a{9})?){9}", 81),
        (r"\({5}a{2}", 5),
        (r"[({9}\]]{4}", 4),
        ("a{,7}|b{8,}", 8),
        ("a{ 5 , 9 }", 9),
        ("a{}", 1),
        ("(a{3}", 3),
        ("a)){3}", 3),
        (f"a{{{'9' * 5000}}}", 10**9),
    ],
)
def test_repeats_of_repeats_multiply(pattern: str, times: int) -> None:
    assert count_repeats(pattern) == times


def test_without_groups_the_largest_is_all_of_it() -> None:
    assert max_repeat("^[a-z]{1,64}@[a-z]{63}$") == 64
    assert max_repeat("{}{,}") == max_repeat("abc") == 1
    assert not has_repeated_groups(r"(\d{2}:)*\d{2}")
    assert has_repeated_groups("(a{9}) {9}")
    assert has_repeated_groups("((a{9})?){9}")
    assert has_repeated_groups("a{9}{9}")


def test_what_a_grammar_quotes_means_itself() -> None:
    assert strip_quoted('root ::= "{900}" ("b\\""{3}){4}') == "root ::= q (q{3}){4}"


def test_names_are_patterns_where_a_schema_says_so() -> None:
    assert list(patterns(b'{"pattern": "a", "title": "pattern"}')) == ["a"]
    assert {"a{2}", "b"} <= set(patterns(b'{"patternProperties":{"a{2}":{"x":"y"},"b":{}}}'))


def test_schemas_in_texts_are_found() -> None:
    text = b'{"json": " {\\"pattern\\": \\"a\\"}", "schema": "none", "x": "{}"}'
    assert list(nested_schemas(text)) == [b'{"pattern": "a"}']
    assert list(nested_schemas(b'"{}"')) == [b"{}"]


@pytest.mark.parametrize("text", ["[", "{", "(", "{9", "a{", '"', "\\", "[^]", "{1,"])
def test_nothing_holds_up_who_reads_it(text: str) -> None:
    """256 KiB, the longest that is taken: what went back and forth would take hours."""
    began_s = time.process_time()
    for long in (text * (262_144 // len(text)), "{" + "9" * 262_144):
        has_repeated_groups(strip_quoted(long))
        max_repeat(long)
        count_repeats(long)
    assert time.process_time() - began_s < 5


@pytest.mark.parametrize("pattern", [TEXT, patterns_module._QUOTED.pattern.encode()])
@given(text=st.text('"\\\\\n{a'))
def test_a_search_looks_at_each_place_once(pattern: bytes, text: str) -> None:
    """At every quote there is a match, so that none begins again inside of what it went through.

    The time grew with the square: a grammar of 16 KB, one quote and then escaped ones, took 2 s.
    """
    place, sent = 0, text.encode()
    for match in re.finditer(pattern, sent):
        assert b'"' not in sent[place : match.start()]
        place = match.end()
    assert b'"' not in sent[place:]


def test_what_nobody_closes_hides_no_repeat() -> None:
    assert strip_quoted('a "b{9}" "c\\"{9}') == 'a q "c\\"{9}'
