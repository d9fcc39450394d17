"""Patterns and grammars that constrain an answer, and how often they repeat.

An engine compiles a repeat to states, and nested repeats to their product: `((a{99}){99}){99}` is a
million states in seventeen characters. Patterns are values of some members, names
(`patternProperties`), or in a schema encoded as text. Grammars repeat in the same way.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

# An unclosed text matches up to the end. Otherwise a failing search would restart at each of its
# quotes, in quadratic time.
TEXT: Final = rb'"(?:[^"\\]|\\(?s:.))*+(?:"|\\?\Z)'
_VALUE = re.compile(rb'"(?:pattern|regex|whitespace_pattern)"\s*+:\s*+(' + TEXT + rb")")
_GRAMMAR = re.compile(rb'"grammar"\s*+:\s*+(' + TEXT + rb")")
_TEXTS = re.compile(rb"(" + TEXT + rb")\s*+(:?)")
_NAMES_ARE_PATTERNS = b'"patternProperties"'
_WITHIN = re.compile(rb'"(?:json|structural_tag|json_schema|schema)"\s*+:\s*+(' + TEXT + rb")")
_MARK = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]?|[()?*+]"
    r"|\{\s*+(\d*+)\s*+,?\s*+(\d*+)\s*+\}|[^\\\[()?*+{\s]++",
    re.DOTALL,
)
_REPEAT = re.compile(r"\{\s*+(\d*+)\s*+,?\s*+(\d*+)\s*+\}")
_GROUP = re.compile(r"[)}][?*+]*+\s*+\{")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*+("?)')
_DIGITS, _NO_END = 9, 10**9  # digits of a sensible number; a longer one counts as the second value


def patterns(text: bytes) -> Iterator[str]:
    """Return each pattern of a schema, including names that are patterns."""
    found = _VALUE.findall(text)
    if _NAMES_ARE_PATTERNS in text:
        found += [item for item, colon in _TEXTS.findall(text) if colon]
    return map(decode_text, found)


def grammars(text: bytes) -> Iterator[str]:
    return map(decode_text, _GRAMMAR.findall(text))


def strip_quoted(grammar: str) -> str:
    """Replace quoted parts of a grammar by a literal; an unclosed quote stays."""
    return _QUOTED.sub(lambda quoted: "q" if quoted[1] else quoted[0], grammar)


def nested_schemas(text: bytes) -> Iterator[bytes]:
    """Yield schemas that are encoded as texts within it, and the text itself if it is one."""
    whole = [text] if text[:1] == b'"' else []
    for part in (*whole, *_WITHIN.findall(text)):
        said = decode_text(part).strip()
        if said[:1] in ("{", "["):
            yield said.encode()


def decode_text(text: bytes) -> str:
    """Return the text of a JSON string that was cut out of a valid document."""
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.MsgspecError:  # no text after all: the end of a name looked like its beginning
        return text.decode(errors="replace")


def has_repeated_groups(pattern: str) -> bool:
    """Return whether repeats may multiply; otherwise the largest one is the total."""
    return "{" in pattern and _GROUP.search(pattern) is not None


def max_repeat(pattern: str) -> int:
    if "{" not in pattern:
        return 1
    return max((_largest(*match_text) for match_text in _REPEAT.findall(pattern)), default=1)


def count_repeats(pattern: str) -> int:
    """Return how often the innermost part of a pattern may repeat, without `*` and `+`."""
    groups, last = [1], 1
    for mark in _MARK.finditer(pattern):
        if mark[0] == "(":
            groups.append(1)
            last = 1
        elif mark[0] == ")":
            last = groups.pop() if len(groups) > 1 else last
            groups[-1] = max(groups[-1], last)
        elif mark[1] is not None:
            last = min(_NO_END, last * _largest(mark[1], mark[2]))
            groups[-1] = max(groups[-1], last)
        elif mark[0] not in "?*+":
            last = 1
    return max(groups)


def _largest(*digits: str) -> int:
    """Return the largest number, at least 1: `{}` and `{,}` have none."""
    return max(
        (int(digit) if len(digit) <= _DIGITS else _NO_END for digit in digits if digit), default=1
    )
