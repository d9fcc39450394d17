"""Exact evaluation of arithmetic that a person writes: `own_usd / (api_usd - v) * 1e6`.

A formula has names, decimal numbers, `+ - * / ^`, parentheses and `ceiling(...)`; exponents are
whole numbers. Names refer only to the inputs. Formulas that would take long are refused before
evaluation.
"""

import ast
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from math import ceil
from operator import add, mul, sub

LONGEST, MOST_NODES, MOST_POWER, MOST_DIGITS, MOST_PLACES = 400, 200, 64, 400, 40
_WRITTEN = re.compile(r"[\w\s.+\-*/^()]*", re.ASCII)
_NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?(?![\w.])")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_TWO: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul,
}  # fmt: skip
CEILING, _OURS = "ceiling", "v_"


class FormulaError(ValueError):
    """A text that is not a formula, or a formula without a value; the message says why."""


def evaluate(text: str, inputs: Mapping[str, Decimal]) -> Fraction:
    """Return the formula's exact value. Raises `FormulaError`."""
    return _value(_parse(text), {name: Fraction(value) for name, value in inputs.items()})


def read_input(name: str, text: str) -> Decimal:
    """Return an input exactly as written. Raises `FormulaError`."""
    try:
        value = Decimal(text.strip().replace(",", ""))
    except ArithmeticError:
        raise FormulaError(f"{name}: `{text}` is not a number") from None
    if not value.is_finite() or abs(value.adjusted()) >= MOST_PLACES:
        raise FormulaError(f"{name}: `{text}` is not a number of an article")
    return value


def names_in(text: str) -> list[str]:
    """Return the formula's inputs, in the order of first use. Raises `FormulaError`."""
    nodes = [node for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)]
    nodes.sort(key=lambda node: node.col_offset)
    names = dict.fromkeys(node.id.removeprefix(_OURS) for node in nodes)
    return [name for name in names if name != CEILING]


def _parse(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise FormulaError(f"a formula has at most {LONGEST} characters")
    if not text.strip() or _WRITTEN.fullmatch(text) is None or "**" in text or "//" in text:
        raise FormulaError("a formula may have only names, numbers, + - * / ^ ( ) and ceiling(...)")
    # Numbers stay decimal text, so that 0.1 is a tenth; names may be words such as `from`.
    named = _NAME.sub(rf"{_OURS}\g<0>", " ".join(text.split()))
    quoted = _NUMBER.sub(r"'\g<0>'", named).replace("^", "**")
    try:
        found = ast.parse(quoted, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"`{text}` is not a formula") from None
    if sum(1 for _ in ast.walk(found)) > MOST_NODES:
        raise FormulaError("the formula has too many parts")
    return found


def _value(node: ast.expr, inputs: Mapping[str, Fraction]) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _checked(Fraction(node.value))
    if isinstance(node, ast.Name):
        name = node.id.removeprefix(_OURS)
        if name not in inputs:
            raise FormulaError(f"`{name}` has no value")
        return _checked(inputs[name])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, inputs)
    if isinstance(node, ast.BinOp):
        return _checked(_both(node, _value(node.left, inputs), _value(node.right, inputs)))
    if isinstance(node, ast.Call) and _is_ceiling(node):
        return Fraction(ceil(_value(node.args[0], inputs)))
    raise FormulaError("a formula may have only names, numbers, + - * / ^ ( ) and ceiling(...)")


def _is_ceiling(node: ast.Call) -> bool:
    known = isinstance(node.func, ast.Name) and node.func.id == _OURS + CEILING
    return known and len(node.args) == 1 and not node.keywords


def _both(node: ast.BinOp, left: Fraction, right: Fraction) -> Fraction:
    if isinstance(node.op, ast.Div):
        if not right:
            raise FormulaError("the formula divides by zero")
        return left / right
    if isinstance(node.op, ast.Pow):
        if right.denominator != 1 or abs(right) > MOST_POWER:
            raise FormulaError(f"a power must be a whole number of at most {MOST_POWER}")
        if not left and right < 0:
            raise FormulaError("the formula divides by zero")
        return left ** int(right)
    work = _TWO.get(type(node.op))
    if work is None:
        raise FormulaError("a formula may have only names, numbers, + - * / ^ ( ) and ceiling(...)")
    return work(left, right)


def _checked(value: Fraction) -> Fraction:
    """Return the value. Raises `FormulaError` for more digits than a figure can have.

    Digits would grow at each step.
    """
    bits = max(abs(value.numerator).bit_length(), value.denominator.bit_length())
    if bits > MOST_DIGITS * 10 // 3:
        raise FormulaError("the formula's figures have too many digits")
    return value
