"""Nobody compares kinds of request: what differs by kind is a fact of its registry's entry."""

import ast
from collections.abc import Iterator

import pytest
from findings import assert_none
from walking import walk

from router.request_kinds import RequestKind

# Each has its own words, beside or in place of the gateway's: what an entry is made of is there.
REGISTRIES = ("router/request_kinds.py", "gateway/kinds/")
OTHER_WORDS = {
    "backends/engine/loraweights.py": "layers of a model",
    "backends/engine/tunerun.py": "members of a result",
    "ledger/prices/mapterms.py": "modes of LiteLLM's price map",
}
MEMBERS = {kind.name for kind in RequestKind}
WORDS = {kind.value for kind in RequestKind} - {
    "chat"
}  # also a kind of text that engines are trained on
SETS = {"DECODED_KINDS", "UNDECODED", "MEASURED"}


def is_member(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in MEMBERS
        and isinstance(node.value, ast.Name)
        and node.value.id in {"Kind", "RequestKind"}
    )


def names_of_kinds(tree: ast.Module) -> set[str]:
    """Module-level names of a member, or of several."""
    names = set(SETS)
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        if any(is_member(each) for each in ast.walk(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {
                each.id
                for target in targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            }
    return names


def operands(node: ast.expr) -> Iterator[ast.expr]:
    """Itself, and the items of a tuple, list or set that is written out."""
    yield node
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from node.elts


def names_kind(node: ast.expr, names: set[str]) -> bool:
    return (
        is_member(node)
        or (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Constant) and node.value in WORDS)
    )


def kind_faults(name: str, tree: ast.Module) -> list[str]:
    """Comparisons with a kind, cases of one, and tables that are keyed by kinds."""
    names, lines = names_of_kinds(tree), []
    for node in walk(tree, ast.Compare, ast.MatchValue, ast.Dict):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [each for side in (node.left, *node.comparators) for each in operands(side)]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        elif isinstance(node, ast.Dict):
            lines += [key.lineno for key in node.keys if key is not None and is_member(key)][:1]
        if any(names_kind(each, names) for each in compared):
            lines.append(node.lineno)  # type: ignore[attr-defined]  # of expressions and patterns
    return [f"{name}:{line}: asks which kind of request it is" for line in sorted(lines)]


def test_what_differs_by_kind_is_in_a_registry(product) -> None:
    found = [
        line
        for each in product
        if not each.name.startswith(REGISTRIES) and each.name not in OTHER_WORDS
        for line in kind_faults(each.name, each.tree)
    ]
    assert_none(found, "give `RequestKindSpec` or `KindTraits` an attribute, and ask that")


def test_what_has_other_words_still_has_them(product) -> None:
    named = {each.name for each in product if kind_faults(each.name, each.tree)}
    assert set(OTHER_WORDS) <= named


@pytest.mark.parametrize(
    "text",
    [
        "if request.kind is Kind.RERANK: pass",
        "if Kind.CHAT == request.kind: pass",
        "if asked.kind not in (Kind.CHAT, Kind.COMPLETION): pass",
        "_CHAT = Kind.CHAT\nif kind is _CHAT: pass",
        "_CHAT: Final = Kind.CHAT\nif kind is _CHAT: pass",
        "SPUN = (Kind.CHAT, Kind.COMPLETION)\nif asked.kind in SPUN: pass",
        "_SOME = frozenset({Kind.EMBEDDING})\nx = kind in _SOME",
        "if request.kind in UNDECODED: pass",
        "if kind == 'embedding': pass",
        "if found.serves in ('rerank', 'transcription'): pass",
        "match kind:\n    case Kind.RERANK: pass",
        "match kind:\n    case 'rerank': pass",
        "WORDS = {Kind.CHAT: 'chat', Kind.RERANK: 'rerank'}",
    ],
)
def test_a_planted_question_is_found(text: str) -> None:
    assert kind_faults("x.py", ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "if KINDS[request.kind].ranked: pass",
        "if request.kind in candidate.kinds: pass",
        "request = Request(kind=Kind.CHAT)",
        "if column.kind is Kind.TEXT: pass",
        "if document['kind'] == 'chat': pass",
    ],
)
def test_a_lookup_is_none(text: str) -> None:
    assert_none(kind_faults("x.py", ast.parse(text)))
