"""Token kinds and budget scopes are listed in one table each; no other expression lists them.

An expression lists kinds if it names four of them, in strings, attributes, keywords or annotated
fields. What reads or writes the fields of a foreign format may: those files are named here.
"""

import ast
from collections.abc import Mapping

import pytest
from findings import assert_none
from walking import walk

from ledger.budgets.scopes import SCOPE_KINDS
from ledger.journals.token_kinds import TOKEN_KINDS

TABLES = {"ledger/journals/token_kinds.py", "ledger/budgets/scopes.py"}
WIRE = {
    "ledger/usage.py": "what providers report",
    "ledger/economics/usageanthropic.py": "Anthropic's usage export",
    "ledger/economics/usagefile.py": "OpenAI's usage export",
    "ledger/reports/usage.py": "the fields of the usage pages",
    "gateway/batches/batch_usage.py": "usage of a batch, as OpenAI's",
    "gateway/control/organization/pages.py": "the usage pages, as OpenAI's",
    "gateway/request/dialects/responses_encoder.py": "usage in a response of the Responses API",
    "gateway/telemetry/otel/vocabularies.py": "counts in OpenInference's and Langfuse's words",
    "ledger/usage_members.py": "what providers call each count",
    "gateway/kinds/speech.py": "what speech counts",
    "gateway/kinds/image_generation.py": "what pictures count",
    "router/prompts.py": "the extent of a request, by what it is counted in",
    "gateway/kinds/kind_usage.py": "what rerankings and transcriptions count",
    "ledger/prices/rates.py": "the four kinds that most requests have, unrolled for speed",
}
LISTED = 4
# `team`, `user`, `key` and `model` are words of much else.
SCOPES = {kind.prefix: kind.prefix for kind in SCOPE_KINDS} | dict.fromkeys(
    ("team", "user", "key", "model"), ""
)
KINDS = {
    word: kind.field
    for kind in TOKEN_KINDS
    for word in (kind.field, kind.column, kind.charge, *kind.map_terms, *kind.genai_terms)
}
NAMING = (ast.Constant, ast.AnnAssign, ast.keyword, ast.Attribute)
PLACES = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Call, ast.BinOp, ast.ClassDef)


def word(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.AnnAssign):
        return node.target.id if isinstance(node.target, ast.Name) else None
    if isinstance(node, ast.keyword):
        return node.arg
    return node.attr if isinstance(node, ast.Attribute) else None


def lists(tree: ast.AST, members: Mapping[str, str], least: int) -> list[int]:
    """The lines of the expressions that name so many members."""
    found: list[int] = []
    if len({members.get(word(node) or "", "") for node in walk(tree, *NAMING)} - {""}) < least:
        return found

    def named(node: ast.AST) -> set[str]:
        mine = {members.get(word(node) or "", "")}
        for child in ast.iter_child_nodes(node):
            mine |= named(child)
        if isinstance(node, PLACES) and len(mine - {""}) >= least:
            found.append(node.lineno)
        return set() if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else mine

    named(tree)
    return found


@pytest.mark.parametrize(("members", "least"), [(KINDS, LISTED), (SCOPES, LISTED - 1)])
def test_no_other_file_lists_them(product, members, least) -> None:
    found = {each.name: lines for each in product if (lines := lists(each.tree, members, least))}
    assert_none(
        (f"{name}: {found[name]}" for name in sorted(found.keys() - TABLES - WIRE.keys())),
        "these lines list kinds of tokens or scopes: go through TOKEN_KINDS or SCOPE_KINDS instead",
    )


def test_each_exception_is_needed(product) -> None:
    found = {each.name for each in product if lists(each.tree, KINDS, LISTED)}
    assert set(WIRE) <= found


PREFIXES = {kind.prefix for kind in SCOPE_KINDS}
GROUPED = {
    "ledger/reports/usage.py": "what a usage page is grouped by",
    "ledger/reports/virtual_tags.py": "what the rules of a virtual tag look at",
}


def listed_scopes(tree: ast.Module) -> list[int]:
    """The lines of lists, sets and tables of several scopes and of nothing else."""
    found = []
    for node in walk(tree, ast.Tuple, ast.List, ast.Set, ast.Dict):
        parts = node.keys if isinstance(node, ast.Dict) else node.elts
        names = {each.value if isinstance(each, ast.Constant) else None for each in parts}
        if len(names) > 1 and names <= PREFIXES:
            found.append(node.lineno)
    return found


def test_no_other_file_lists_scopes_alone(product) -> None:
    found = {each.name: lines for each in product if (lines := listed_scopes(each.tree))}
    assert set(GROUPED) <= found.keys()
    assert_none(
        (f"{name}: {found[name]}" for name in sorted(found.keys() - TABLES - GROUPED.keys())),
        "these lines list scopes: go through SCOPE_KINDS instead",
    )


@pytest.mark.parametrize("text", ['OWN = ("key", "user")', 'x = {"org": "organisation", "tag": 1}'])
def test_a_planted_list_of_scopes_is_found(text: str) -> None:
    assert listed_scopes(ast.parse(text))


def test_other_words_beside_them_make_no_list_of_scopes() -> None:
    assert_none(listed_scopes(ast.parse('BY = ("team", "user", "status")')))


@pytest.mark.parametrize(
    ("text", "members", "least"),
    [
        ('NAMES = ("input", "cached", "output", "reasoning")', KINDS, LISTED),
        ('U = {"searches": 1, "seconds": 2, "audio_input": 3, "output_mtok": 4}', KINDS, LISTED),
        ("class A:\n    input: int\n    cached: int\n    audio_ms: int\n    output: int", KINDS, 4),
        ("a.input_tokens + a.cached_tokens + a.cache_write_tokens + a.audio_ms", KINDS, LISTED),
        ('{"input_mtok": 1, "searches": 2, "seconds": 3, "cached": 4}', KINDS, LISTED),
        ('SCOPES = ("global", "external", "org", "team")', SCOPES, LISTED - 1),
    ],
)  # fmt: skip
def test_a_planted_list_is_found(text: str, members, least: int) -> None:
    assert lists(ast.parse(text), members, least) != []


def test_a_few_names_are_no_list() -> None:
    assert_none(lists(ast.parse('KINDS = ("input", "cached", "output")'), KINDS, LISTED))
    assert_none(lists(ast.parse('BY = ("team", "user", "key", "model")'), SCOPES, LISTED - 1))
