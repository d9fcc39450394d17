"""YAML with lines: what YAML lets pass is said, what it cannot read is one plain line."""

import pytest

from gateway.config.document import read_document

TEXT = """\
# a comment
server: {port: 8080}
models:
  chat:
    targets:
      - openai/a
      - openai/b
base: &base {x: 1}
derived:
  <<: *base
  y: 2
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ((), None),
        (("server",), 2),
        (("server", "port"), 2),
        (("models", "chat", "targets"), 5),
        (("models", "chat", "targets", 1), 7),
        (("models", "chat", "residency"), 4),  # what is missing belongs where it would stand
        (("models", "chat", "targets", 9), 5),
        (("nowhere",), None),
        (("derived", "x"), 8),
        (("derived", "y"), 11),
    ],
)
def test_a_place_has_the_line_of_its_key(place, line):
    assert read_document(TEXT).line(place) == line


@pytest.mark.parametrize(
    ("text", "path", "line", "first"),
    [
        ("a: 1\nb: 2\na: 3\n", "a", 3, 1),
        ("m: {x: 1, x: 2}\n", "m.x", 1, 1),
        ("l:\n  - p: 1\n    p: 2\n", "l[0].p", 3, 2),
    ],
)
def test_a_key_stated_twice_is_a_fault(text, path, line, first):
    (fault,) = read_document(text).faults
    assert (fault.path, fault.line) == (path, line)
    assert f"first in line {first}" in fault.message


@pytest.mark.parametrize("text", [TEXT, "a: {x: 1}\nb: {x: 1}\n", "m:\n  <<: {x: 1}\n  <<: {y: 2}"])
def test_equal_keys_of_different_mappings_are_none(text):
    assert read_document(text).faults == ()


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: [", "not YAML", 1),
        ("a:\n\tb: 1\n", "with blanks, not with tabs", 2),
        ("a: 1\n---\nb: 2\n", "single document", 2),
        ("just words", "must be a mapping", 1),
        ("- 1", "must be a mapping", 1),
        ("a: !!python/object:os.system x", "not YAML", 1),
        ("a: *nothing", "undefined alias", 1),
        ("a: 1\nb: \x00", "#x0000 is not allowed", 2),
        ("[" * 5000, "nested more than 100 deep", 1),
        ("a: 1\nb: !!int ''", "is no int", 2),
        ("a: &a [*a]", "stand for what it is in", 1),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text, words, line):
    document = read_document(text)
    assert document.value is None
    (fault,) = document.faults
    assert words in fault.message
    assert "\n" not in fault.message
    assert fault.line == line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("a: 2026-02-30", {"a": "2026-02-30"}),  # no such day
        ("a: 80:80", {"a": "80:80"}),  # not 4880
        ("a: 1:30.5", {"a": "1:30.5"}),
        ("a: 12", {"a": 12}),
        ("a: 0.5", {"a": 0.5}),
    ],
)
def test_values_are_what_they_look_like(text, value):
    document = read_document(text)
    assert (document.value, document.faults) == (value, ())


def test_a_mapping_that_holds_itself_is_a_fault():
    (fault,) = read_document("x: 1\na: &a {b: *a, c: 1}\n").faults
    assert (fault.line, "stand for what it is in" in fault.message) == (2, True)


def test_a_key_that_is_no_name_hides_nothing_else() -> None:
    found = read_document("a: 1\n{x: y}: 2\n? [1, 2]\n: 3\nb: {[c]: 4, d: 5}\na: 6\n")
    assert found.value == {"a": 6, "b": {"d": 5}}
    assert sorted(fault.line for fault in found.faults) == [2, 3, 5, 6]
    assert sum("a key must be a name" in fault.message for fault in found.faults) == 3
