"""The nodes of a tree by their type, found once for all tests that ask for them.

A dozen tests walked the same million nodes, most of them for a few classes or loops. Marks without
fields of their own (`Load`, `Add`) are left out.
"""

import ast
from collections import defaultdict
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
KEPT = "nodes_by_type"  # an attribute of the tree, so that the nodes go with it


def walk(tree: ast.AST, *kinds: type[Node]) -> list[Node]:
    """Return the nodes of exactly these types, each type from the outermost node inwards."""
    kept = getattr(tree, KEPT, None)
    if kept is None:
        kept = group(tree)
        setattr(tree, KEPT, kept)
    return [node for kind in kinds for node in kept.get(kind, ())]


def group(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    groups: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    left = [tree]
    for node in left:  # which grows meanwhile
        kind = type(node)
        groups[kind].append(node)
        for name in kind._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                left += [each for each in value if isinstance(each, ast.AST) and each._fields]
            elif isinstance(value, ast.AST) and value._fields:
                left.append(value)
    return dict(groups)
