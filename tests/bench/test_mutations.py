"""Every mutation is another program that can be read, and only one place differs."""

import ast

import pytest
from mutations import mutated, mutations

TEXT = '''
def spend(left: int, amount: int, names: list[str]) -> int | None:
    """Take one."""
    if amount > left and names:
        note(names)
        left -= 1
    return min(left + 2, amount) if left else None


class Other:
    def inner(self) -> str:
        while True:
            return "a" + str(len("b"))
'''


def test_each_place_is_changed_once() -> None:
    whole = ast.dump(ast.parse(TEXT))
    texts = [mutated(TEXT, each.number) for each in mutations(TEXT)]
    assert len({ast.dump(ast.parse(text)) for text in texts} - {whole}) == len(texts) > 10


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("Gt is GtE", "if amount >= left and names:"),
        ("and is or, or is and", "if amount > left or names:"),
        ("min is max", "return max(left + 2, amount) if left else None"),
        ("one more", "left -= 2"),
        ("is left out", "pass"),
        ("true is false, false is true", "while False:"),
    ],
)
def test_what_a_mutation_says_it_does(what: str, line: str) -> None:
    numbers = [each.number for each in mutations(TEXT) if each.what == what]
    assert any(line in map(str.strip, mutated(TEXT, n).splitlines()) for n in numbers)


def test_names_make_no_difference() -> None:
    """Two trees that differ by names alone have the same places."""
    other = TEXT.replace("amount", "cost_pusd").replace("spend", "charge")
    assert [each.what for each in mutations(other)] == [each.what for each in mutations(TEXT)]


def test_texts_and_docstrings_are_let_be() -> None:
    assert not any(each.line in {3, 14} and "Add" in each.what for each in mutations(TEXT))


def test_what_returns_none_already_is_no_place() -> None:
    assert mutations("def read():\n    return None\n") == []


def test_whether_a_zip_is_strict_is_no_place() -> None:
    text = "def pair(a, b):\n    check(strict=True)\n    return zip(a, b, strict=True)\n"
    assert [(each.line, each.what) for each in mutations(text)] == [
        (2, "is left out"), (2, "true is false, false is true"), (3, "returns None"),
    ]  # fmt: skip


def test_a_number_that_is_none() -> None:
    with pytest.raises(ValueError, match="there is no mutation 99"):
        mutated(TEXT, 99)
