"""Conditions of policies in CEL, compiled once when a policy set is read.

Conditions use a part of CEL: comparisons, `&&`, `||`, `!`, `in`, `[]`, `has`, `size`, `startsWith`,
`endsWith` and `contains`, over the facts in `FACTS`. Loops, arithmetic and regular expressions are
rejected, so evaluation takes microseconds, bounded by the condition's length. No Python is
evaluated. The library is loaded with the first condition, without its command line, which would
cost 12 MB per worker. Types are checked at that time with test requests. A later failure, such as a
missing tag, raises `ConditionUndecided`; `router.policy` defines its effect.
"""

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import msgspec

from gateway.config.unsatisfiable import tags_of, unsatisfiable_reasons

LONGEST = 1000  # characters; limits the nesting for the parser

_OPERATORS = frozenset(
    {"_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "_[_]", "-_"}
)
_FUNCTIONS = frozenset({"size", "startsWith", "endsWith", "contains"})
# The parser's messages: something missing, an unknown token, a misplaced token.
_SYNTAX = re.compile(
    r"missing '(.*?)' at '|token recognition error at: '(.*?)'(?: ERROR:|$)"
    r"|(?:mismatched|extraneous) input '(.*?)' expecting"
)
# A request without a limit has 0 here, and would match conditions on low limits.
_LOW_LIMIT = re.compile(r"\bmax_tokens\s*<|>=?\s*max_tokens\b")
_HAS_LIMIT = re.compile(r"\bmax_tokens\s*(?:>|!=)|(?:<|<=|!=)\s*max_tokens\b")
_COUNTS_UNLIMITED = (
    "`max_tokens` is 0 where a request sets no limit, so this matches such requests, too: say "
    "`max_tokens > 0 && ...`"
)
_DOUBLED = {"=": "==", "&": "&&", "|": "||"}
_LOOPS = frozenset({"@not_strictly_false", "_?_:_"})


class ConditionUndecided(Exception):
    """Error: the condition has no result for this request."""


class ConditionError(ValueError):
    """Error in a condition, with a text for its author."""


class ConditionInput(msgspec.Struct, frozen=True):
    """Facts that conditions may use. Tags are the key's own and cannot be set by a header."""

    model: str  # logical, aliases resolved
    team: str
    org: str = ""
    key: str = ""
    user: str = ""  # the key's user; empty without one
    tags: dict[str, str] = {}
    kind: str = "chat"
    stream: bool = False
    prompt_tokens: int = 1  # estimated
    max_tokens: int = 0  # 0: the client set no limit
    n: int = 1
    features: tuple[str, ...] = ()


FACTS = ConditionInput.__struct_fields__
_SAMPLES = (
    ConditionInput(model="", team=""),
    ConditionInput(
        model="m",
        team="t",
        org="o",
        key="k",
        user="u",
        kind="completion",
        stream=True,
        prompt_tokens=2**31,
        max_tokens=2**31,
        n=128,
        features=("tools", "json_schema", "images"),
    ),
)


class Condition:
    """Compiled condition: `evaluate` returns its result or raises `ConditionUndecided`."""

    __slots__ = ("_program", "_wanted", "doubts", "may_fail", "text")

    def __init__(self, text: str) -> None:
        """Compile the condition. Raises `ConditionError` if it is invalid."""
        self.text = text
        self.may_fail = False  # may fail for keys without a named tag
        self._program, self._wanted = _compile_condition(text)
        self._try()
        self.doubts = tuple(unsatisfiable_reasons(text))  # reasons why it may never be true
        if not self.doubts and self._is_undecided_when_tagged():
            self.doubts = ("tags are text: compare them with text in quotes",)
        if _LOW_LIMIT.search(text) and not _HAS_LIMIT.search(text):
            self.doubts = (*self.doubts, _COUNTS_UNLIMITED)

    def evaluate(self, asking: ConditionInput) -> bool:
        try:
            answer = self._program.execute({name: getattr(asking, name) for name in self._wanted})
        except Exception as error:
            raise ConditionUndecided(str(error)) from error
        if answer is True or answer is False:
            return bool(answer)
        raise ConditionUndecided(f"it is no yes or no, but {type(answer).__name__}")

    def _try(self) -> None:
        for sample in _SAMPLES:
            facts = {name: getattr(sample, name) for name in self._wanted}
            try:
                answer = self._program.execute(facts)
            except KeyError:
                self.may_fail = True  # fails only for keys without the tag
                continue
            except Exception as error:
                raise ConditionError(_first_line(error)) from error
            if not isinstance(answer, bool):
                raise ConditionError(f"must be true or false, not {type(answer).__name__}")

    def _is_undecided_when_tagged(self) -> bool:
        """Return whether the condition is undecided even for a key with all its tags."""
        tags = dict.fromkeys(tags_of(self.text), "")
        for sample in _SAMPLES:
            try:
                self.evaluate(msgspec.structs.replace(sample, tags=tags))
            except ConditionUndecided:
                return True
        return False


def _compile_condition(text: str) -> tuple[Any, tuple[str, ...]]:
    if len(text) > LONGEST:
        raise ConditionError(f"is longer than {LONGEST} characters")
    try:
        program = _cel().compile(text)
        said = program.references()
    except Exception as error:
        raise ConditionError(_first_line(error)) from error
    functions = set(said["functions"]) - _OPERATORS - _FUNCTIONS
    if functions & _LOOPS:
        raise ConditionError("loops and `?:` are not supported: use `in`, `&&` and `||`")
    for name in sorted(functions):
        known = ", ".join(sorted(_FUNCTIONS))
        raise ConditionError(f"`{name.strip('_')}` is not supported; functions are {known}")
    unknown = sorted(set(said["variables"]) - set(FACTS))
    if unknown:
        raise ConditionError(f"has no fact `{unknown[0]}`; facts are {', '.join(FACTS)}")
    return program, tuple(said["variables"])


@cache
def _cel() -> Any:
    """Return the extension module; importing its package would load the command line, too."""
    package = find_spec("cel")
    places = None if package is None else package.submodule_search_locations
    found = PathFinder.find_spec("cel.cel", places)
    if found is None or found.loader is None:
        raise ImportError("common-expression-language is not installed whole")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _misplaced_text(missing: str | None, unread: str | None, other: str | None) -> str:
    """Return the parser's findings that help the author."""
    if missing is not None:
        return f"a `{missing}` is missing"
    if unread is not None:
        word = unread.strip()
        if word[:1] in ("'", '"'):
            return "a quotation mark is not closed"
        meant = _DOUBLED.get(word[:1])
        return f"write `{meant}`, not `{word[:1]}`" if meant else f"`{word}` has no meaning here"
    if other == "<EOF>":
        return "the condition is incomplete: a value must follow `>`, `&&` and other operators"
    return f"`{other}` is not supported: join conditions with `&&` and `||`, negate with `!`"


def _first_line(error: Exception) -> str:
    """Return advice for an error, else the library's message without its source excerpt."""
    words = " ".join(str(error).split())
    _, found, rest = words.partition("ERROR: <input>:")
    said = f"at {rest.partition(' |')[0]}" if found else words[:200]
    place = said.partition(": ")[0]
    if told := _SYNTAX.search(said):
        return f"{place}: {_misplaced_text(*told.groups())}"
    if "Recursion limit" in said:
        return f"{place}: it is nested too deep"
    if "invalid int literal" in said:
        return f"{place}: the number is too large: at most {2**63 - 1}"
    if said.startswith("No such overload"):
        return (
            "compares what cannot be compared: prompt_tokens, max_tokens and n are whole numbers,"
            " features a list, tags by name, stream true or false, all else text in quotes"
        )
    return said
