"""YAML with bounds: short texts cost little, and what others read is read alike."""

from typing import Any

import pytest
import yaml

from ledger import yamltext
from ledger.yamltext import BoundedLoader

AT_MOST = 300  # values looked at before a text is refused, however long it is
DEEP = {
    "flat": "[" * 4000, "braces": "{" * 4000, "questions": "? " * 2000, "dashes": "- " * 2000,
    "a megabyte": "[" * 1_000_000, "lines": "[[[[\n" * 1000, "commas": "x: " + "[[]," * 1000,
}  # fmt: skip
REFUSED = {
    "itself": ("a: &a [*a]", "stand for what it is in"),
    "deep by aliases": ("- &a0 []\n" + "".join(
        f"- &a{n} [*a{n - 1}]\n" for n in range(1, 200)), "nested more than 100 deep"),
    "no int": ("a: !!int ''", "is no int"), "no float": ("a: !!float ''", "is no float"),
    "no bool": ("a: !!bool x", "is no bool"), "no time": ("a: !!timestamp x", "is no timestamp"),
    "no day": ("a: 2026-13-01", "month must be in 1..12"),
    "a long number": ("a: 0x" + "f" * 300, "a number of more than 1024 bits"),
    "python": ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
}  # fmt: skip


def laughs(levels: int, *, merged: bool) -> str:
    """Lines that stand for 10 to the power of `levels` values."""
    lines = ["a0: &a0 {x: 1}" if merged else "a0: &a0 [x]"]
    for level in range(1, levels + 1):
        many = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{many}]}}" if merged else f"[{many}]"))
    return "\n".join(lines)


def read(text: str) -> object:
    return yaml.load(text, Loader=BoundedLoader)


class CountingLoader(BoundedLoader):
    looked_at = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.looked_at += 1
        return super().compose_node(parent, index)


def refused_early(text: str, words: str) -> None:
    loader = CountingLoader(text)
    with pytest.raises(yaml.MarkedYAMLError, match=words):
        loader.get_single_data()
    assert loader.looked_at < AT_MOST


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_too_deep_is_refused_at_once(text: str) -> None:
    refused_early(text, "nested more than 100 deep")


@pytest.mark.parametrize("merged", [False, True], ids=["aliases", "merges"])
def test_a_few_lines_that_stand_for_a_billion_values_are_refused(merged: bool) -> None:
    refused_early(laughs(9, merged=merged), "aliases repeat more than 50,000 values")


def test_without_the_bound_they_multiply(monkeypatch) -> None:
    monkeypatch.setattr(yamltext, "MOST_REPEATED", 10**9)
    node = BoundedLoader(laughs(4, merged=True)).get_single_node()
    loader = BoundedLoader("")
    loader.flatten_mapping(node.value[-1][1])
    assert len(node.value[-1][1].value) == 10**4


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_value_is_told_with_its_line(text: str, words: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match=words) as refused:
        read(text)
    assert refused.value.problem_mark.line == text.count("\n") or "deep" in words


@pytest.mark.parametrize("text", ["a: \x00", "a: \ud800", "a: \ufeff"])
def test_characters_that_are_none_of_yamls_are_told_with_their_place(text: str) -> None:
    with pytest.raises(yaml.reader.ReaderError) as refused:
        read(text)
    assert refused.value.position == 3


def test_all_else_is_read_as_ever() -> None:
    text = (
        "\ufeffa: &a {x: 1, y: [1.5, ~, yes, 2026-01-02, 0x1f, 't']}\nb: {<<: *a, x: 2}\nc: [*a]\n"
    )
    assert read(text) == yaml.safe_load(text)
    assert read("[" * 100 + "]" * 100) == yaml.safe_load("[" * 100 + "]" * 100)
    assert read("") is None
