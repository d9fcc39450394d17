"""Mutations of a Python file: every place where one small change makes it another program.

Pure: text in, places and mutated texts out. A place is found again by its number in the file, which
renames do not change, so two trees that differ by names alone have the same mutants.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change. `number` counts the file's places; `line` is where it stands."""

    number: int
    line: int
    what: str


def mutations(text: str) -> list[Mutation]:
    tree = ast.parse(text)
    return [
        Mutation(number, node.lineno, what) for number, (node, what) in enumerate(_places(tree))
    ]


def mutated(text: str, number: int) -> str:
    """The whole file with that one change; comments are lost."""
    tree = ast.parse(text)
    for place, (node, what) in enumerate(_places(tree)):
        if place == number:
            _change(node, what)
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    raise ValueError(f"there is no mutation {number}: the file has fewer")


def _places(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in _body(function):
                yield from _of(statement)


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """All nodes of a function but its docstring and the functions inside, in their order."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield node
        stack.extend(reversed(list(_children(node))))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node, without `strict=` of a `zip`: that raises for a defect alone."""
    is_zip = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip"
    )
    for child in ast.iter_child_nodes(node):
        if not (is_zip and isinstance(child, ast.keyword) and child.arg == "strict"):
            yield child


def _of(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield node, f"{type(op).__name__} is {COMPARISONS[type(op)].__name__}"
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_text(node):
            yield node, f"{type(op).__name__} is {ARITHMETIC[type(op)].__name__}"
        case ast.BoolOp():
            yield node, "and is or, or is and"
        case ast.If() | ast.IfExp() | ast.While():
            yield node, "the condition is not"
        case ast.Constant(value=bool()):
            yield node, "true is false, false is true"
        case ast.Constant(value=int()):
            yield node, "one more"
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield node, f"{name} is {CALLS[name]}"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            yield node, "is left out"
        case ast.Return(value=ast.Constant(value=None)):
            return  # it does already
        case ast.Return(value=ast.expr()):
            yield node, "returns None"


def _is_text(node: ast.BinOp) -> bool:
    """Whether one side is a text: the change would be a type error, which shows nothing."""
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _change(node: ast.expr | ast.stmt, what: str) -> None:
    match node:
        case ast.Compare():
            node.ops = [COMPARISONS[type(node.ops[0])]()]
        case ast.BinOp():
            node.op = ARITHMETIC[type(node.op)]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.If() | ast.IfExp() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int()):
            node.value += 1
        case ast.Call(func=ast.Name()):
            node.func.id = CALLS[node.func.id]
        case ast.Expr() | ast.AugAssign():
            _become(node, ast.Pass())
        case ast.Return():
            node.value = ast.Constant(None)
        case _:
            raise AssertionError(what)


def _become(node: ast.stmt, other: ast.stmt) -> None:
    """Make a statement another one where it stands: its parent keeps the same object."""
    line = node.lineno
    node.__class__ = other.__class__  # type: ignore[assignment]  # both are statements
    node.__dict__.clear()
    node.__dict__.update(vars(other), lineno=line, col_offset=0)
