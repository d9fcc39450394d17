"""Check for comparisons that are never true, although CEL accepts them.

`stream == "true"` and `tags.level == 1` are valid CEL, but a rule with one never matches. The check
uses only the text: a fact compared by `==` or `!=` with a literal of another type, and words that
no request has.
"""

import re
from collections.abc import Iterator

from ledger.budgets.scopes import prefixes
from router.request_kinds import RequestKind
from router.types import Feature

_STRING = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_LITERAL = rf"{_STRING}|-?\d[\w.]*|\b(?:true|false)\b"
_FACT = rf"\btags\s*\[\s*(?:{_STRING})\s*\]|\btags\.\w+|(?<![\w.])[a-z_]+\b(?!\s*[.(\[])"
_EQUAL = re.compile(rf"(?P<fact>{_FACT})\s*[=!]=\s*(?P<literal>{_LITERAL})")
_TURNED = re.compile(rf"(?P<literal>{_LITERAL})\s*[=!]=\s*(?P<fact>{_FACT})")
_LISTED = re.compile(rf"(?P<fact>{_FACT})\s+in\s+\[(?P<items>[^\]]*)\]")
_WITHIN = re.compile(rf"(?P<word>{_STRING})\s+in\s+features\b")
_TAG = re.compile(rf"\btags\.(\w+)|\btags\s*\[\s*({_STRING})\s*\]")
_NUMBERS = frozenset({"prompt_tokens", "max_tokens", "n"})
_TEXTS = frozenset({"kind", *prefixes(lambda scope: scope.is_one_name)})


def unsatisfiable_reasons(text: str) -> Iterator[str]:
    """Yield the reasons why a condition is never true, one line each."""
    for pattern in (_EQUAL, _TURNED):
        for match_ in pattern.finditer(text):
            fact, literal = match_["fact"], match_["literal"]
            meant = _meant(fact)
            if meant is not None and meant != _kind(literal):
                yield f"`{fact}` is {meant}, and never equal to `{literal}`"
            elif fact == "kind" and literal[1:-1] not in tuple(RequestKind):
                yield f"there is no kind `{literal[1:-1]}`: {', '.join(RequestKind)}"
    for match_ in _WITHIN.finditer(text):
        word = match_["word"][1:-1]
        if word not in tuple(Feature):
            yield f"there is no feature `{word}`: {', '.join(Feature)}"


def compared_facts(text: str) -> Iterator[tuple[str, str]]:
    """Yield each fact that is compared with a text by `==`, `!=` or `in [...]`, and the text."""
    for pattern in (_EQUAL, _TURNED):
        for match_ in pattern.finditer(text):
            if _kind(match_["literal"]) == "text":
                yield match_["fact"], match_["literal"][1:-1]
    for match_ in _LISTED.finditer(text):
        for item in re.findall(_STRING, match_["items"]):
            yield match_["fact"], item[1:-1]


def tags_of(text: str) -> frozenset[str]:
    """Return the names of tags that the condition uses."""
    return frozenset(plain or quoted[1:-1] for plain, quoted in _TAG.findall(text))


def _meant(fact: str) -> str | None:
    if fact.startswith("tags") or fact in _TEXTS:
        return "text"
    if fact in _NUMBERS:
        return "a number"
    return {"stream": "true or false", "features": "a list"}.get(fact)


def _kind(literal: str) -> str:
    if literal[0] in "\"'":
        return "text"
    return "true or false" if literal in ("true", "false") else "a number"
