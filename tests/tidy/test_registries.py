"""What a registry holds is asked of the registry: no other file compares the names in it.

Provider kinds, engine kinds and reasons each have one table. Who compares `.kind` with a name, or
lists several words of a table, would have to be found and changed with every new entry.
"""

import ast
from collections.abc import Iterator

import pytest
from findings import assert_none
from walking import walk

from backends.engines import ENGINE_KINDS
from backends.providers import PROVIDER_KINDS
from router.reasons import Reason

KINDS = {*PROVIDER_KINDS, *ENGINE_KINDS}
CONSTANTS = {"OPENAI", "LITELLM", "VLLM", "SIMULATED"}
TABLES = ("backends/providers.py", "backends/engines.py", "router/reasons.py")
# A rung of the ladder is a naive server or vLLM, whatever engines a pool may have.
OTHER_KINDS = {"backends/engine/ladderrun.py"}
# Words of reasons that nothing else is called.
REASON_WORDS = {
    "best_effort", "bid_price", "busier", "candidates", "canary", "circuit_open", "costlier",
    "kv_headroom", "price_cap", "rate_limit", "unhealthy", "unknown_state", "unpriced",
}  # fmt: skip
FEW = 2  # reasons that one place may name: what it does is about just these


def kind_faults(name: str, tree: ast.Module) -> list[str]:
    """Comparisons of something's `kind` with the name of an entry."""
    return [
        f"{name}:{node.lineno}: {ast.unparse(node)}"
        for node in walk(tree, ast.Compare)
        if any(_is_kind(side) for side in (node.left, *node.comparators))
        and any(_names_entry(side) for side in (node.left, *node.comparators))
    ]


def _is_kind(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "kind") or (
        isinstance(node, ast.Name) and node.id == "kind"
    )


def _names_entry(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return any(_names_entry(each) for each in node.elts)
    if isinstance(node, ast.Name):
        return node.id in CONSTANTS
    return isinstance(node, ast.Constant) and node.value in KINDS


def reason_faults(name: str, tree: ast.Module) -> list[str]:
    """Collections of more than a few reasons, by member or by word."""
    return [
        f"{name}:{line}: lists {', '.join(sorted(words))}"
        for line, words in _listed(tree)
        if len(words) > FEW
    ]


def _listed(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """Give each collection; several names that are bound at once (`A, B = ...`) are none."""
    bound = {
        id(node.value) for node in walk(tree, ast.Assign) if isinstance(node.targets[0], ast.Tuple)
    }
    for node in walk(tree, ast.Dict, ast.Tuple, ast.Set, ast.List):
        if id(node) in bound:
            continue
        parts: list[ast.expr | None] = list(node.keys if isinstance(node, ast.Dict) else node.elts)
        yield node.lineno, {word for part in parts if (word := _reason(part)) is not None}


def _reason(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "Reason" else None
    if isinstance(node, ast.Constant) and node.value in REASON_WORDS:
        return str(node.value)
    return None


def test_no_file_but_the_table_compares_kinds(product) -> None:
    asked = [each for each in product if each.name not in (*TABLES, *OTHER_KINDS)]
    assert_none(
        (line for each in asked for line in kind_faults(each.name, each.tree)),
        "give the registry's entry an attribute, and ask that (ARCHITECTURE.md, Registries)",
    )


def test_no_file_but_the_table_lists_reasons(product) -> None:
    asked = [each for each in product if each.name not in TABLES]
    assert_none(
        (line for each in asked for line in reason_faults(each.name, each.tree)),
        "give `ReasonTraits` in router/reasons.py an attribute, and ask that",
    )


def test_the_words_that_are_looked_for_are_reasons() -> None:
    assert {reason.value for reason in Reason} >= REASON_WORDS


@pytest.mark.parametrize(
    "text",
    [
        'x = provider.kind == "litellm"',
        'x = "vllm" != engine.kind',
        'x = what.kind in ("openai", "litellm")',
        "x = kind == SIMULATED",
    ],
)
def test_a_planted_comparison_is_found(text: str) -> None:
    assert kind_faults("gateway/x.py", ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "x = {Reason.TTFT, Reason.TPOT, Reason.SALT}",
        "x = {Reason.TTFT: 1, Reason.TPOT: 2, Reason.SALT: 3}",
        'x = ["kv_headroom", "unhealthy", "bid_price"]',
    ],
)
def test_a_planted_list_of_reasons_is_found(text: str) -> None:
    assert reason_faults("ledger/x.py", ast.parse(text))


@pytest.mark.parametrize(
    "text",
    ['x = block.kind == "call"', "x = ENGINE_KINDS[pool.kind].simulated", "x = kind != LORA"],
)
def test_other_kinds_may_be_compared(text: str) -> None:
    assert_none(kind_faults("gateway/x.py", ast.parse(text)))


def test_a_pair_of_reasons_may_be_named() -> None:
    assert_none(reason_faults("gateway/x.py", ast.parse("x = (Reason.CONTEXT, Reason.BUDGET)")))
