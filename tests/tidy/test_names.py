"""Names: classes are unique nouns, and a loop variable names its item."""

import ast
import re
from collections import defaultdict

import pytest
from findings import assert_none
from walking import walk

WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z][a-z0-9]*|[A-Z]+")
# One-word nouns that end like a participle.
NOUNS = {"Finding", "Posting", "Ranking", "Embedding", "Encoding", "Speed", "Need", "Feed", "Seed"}
# Participles, pronouns and adverbs that no ending gives away.
NO_NOUNS = {
    "Again", "Away", "Begun", "Bought", "Done", "Found", "Gone", "Heard", "Held", "Here", "Kept",
    "Known", "Left", "Lent", "Lost", "Made", "Nobody", "Nothing", "Over", "Paid", "Read", "Said",
    "Seen", "Sent", "Shown", "Sold", "Somebody", "Spent", "Stood", "Taken", "There", "Told", "Way",
    "What", "Where", "Who", "Whole", "Written",
}  # fmt: skip
PLACEHOLDERS = {"one", "found"}
SHARED_PER_MILLE = 30  # of all public classes, by their names


def is_noun(name: str) -> bool:
    """Whether a class's name is more than a bare participle, pronoun or adverb."""
    words = WORD.findall(name.strip("_"))
    if len(words) != 1 or words[0] in NOUNS:
        return True
    return words[0] not in NO_NOUNS and not re.search(r"(ed|ing)$", words[0])


def classes(tree: ast.Module) -> list[str]:
    return [node.name for node in walk(tree, ast.ClassDef)]


def loop_variables(tree: ast.Module) -> list[tuple[str, int]]:
    """Names that a `for`, a comprehension or a lambda binds, with their lines."""
    targets: list[ast.expr] = []
    names: list[tuple[str, int]] = []
    targets += [node.target for node in walk(tree, ast.For, ast.AsyncFor, ast.comprehension)]
    for node in walk(tree, ast.Lambda):
        names += [(argument.arg, argument.lineno) for argument in node.args.args]
    for target in targets:
        names += [(n.id, n.lineno) for n in ast.walk(target) if isinstance(n, ast.Name)]
    return names


def placeholders(tree: ast.Module) -> list[tuple[str, int]]:
    return [(name, line) for name, line in loop_variables(tree) if name in PLACEHOLDERS]


def test_class_names_are_nouns(everything) -> None:
    faults = [
        f"{source.name}: {name}"
        for source in everything
        for name in classes(source.tree)
        if not is_noun(name)
    ]
    assert_none(faults, "name the class for what it is: a noun of one to three words")


def test_class_names_are_unique(product) -> None:
    """None is shared within a package, and few between packages."""
    places = defaultdict(list)
    for source in product:
        for name in classes(source.tree):
            if not name.startswith("_"):
                places[name].append(source.name)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    within = {
        name: where
        for name, where in shared.items()
        if len({place.partition("/")[0] for place in where}) < len(where)
    }
    assert_none(
        (f"{name}: {where}" for name, where in within.items()),
        "give the newer class a name that says how it differs",
    )
    total = sum(map(len, places.values()))
    assert sum(map(len, shared.values())) * 1000 <= total * SHARED_PER_MILLE, shared


def test_loop_variables_name_their_item(everything) -> None:
    faults = [
        f"{source.name}:{line} `{name}` says nothing of its item"
        for source in everything
        for name, line in placeholders(source.tree)
    ]
    assert_none(faults)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("for one in rows: pass", ["one"]),
        ("[found for found in rows]", ["found"]),
        ("{key: one for key, one in rows}", ["one"]),
        ("sorted(rows, key=lambda one: one.at_us)", ["one"]),
        ("for row in rows: one = row", []),
    ],
)
def test_a_placeholder_is_found(text: str, names: list[str]) -> None:
    assert [name for name, _ in placeholders(ast.parse(text))] == names


@pytest.mark.parametrize("name", ["Told", "Held", "Waiting", "Packed", "_Seen", "Nobody"])
def test_a_participle_is_no_class_name(name: str) -> None:
    assert not is_noun(name)


@pytest.mark.parametrize("name", ["Posting", "PackedDecision", "Slo", "FeedbackLoops", "Hold"])
def test_a_noun_is_a_class_name(name: str) -> None:
    assert is_noun(name)
