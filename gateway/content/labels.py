"""Labels between the groups of a number: "part 2:", `sb.append("`, "second block", counters.

What is left without them is read as the groups of one number. Signs are literals with the second
of their counters: one label alone is everywhere.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

_ORDINALS: Final = (
    r"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|[1-9](?:st|nd|rd|th)|"
    r"erste[rs]?|zweite[rs]?|dritte[rs]?|vierte[rs]?|f\u00fcnfte[rs]?|sechste[rs]?|siebte[rs]?|achte[rs]?|"
    r"premi\u00e8?re?|deuxi\u00e8me|troisi\u00e8me|quatri\u00e8me|"
    r"primero?|segundo|tercero?|cuarto|quinto|sexto|next|last|final|then|dann|puis|luego|and|und|et|y"
)
_NOUNS: Final = (
    r"parts?|blocks?|groups?|chunks?|pieces?|segments?|digits?|numbers?|num|pos|position|index|idx|"
    r"fields?|cells?|values?|teil|gruppe|ziffern?|bloque|bloc|groupe|grupo|parte|partie|four|vier|"
    r"half|halves|h\u00e4lfte|mitad|moiti\u00e9|ends?|starts?|begins?|ending|starting|with|in|it|is|by|followed|dot|dash|hyphen|space|blank|"
    r"slash|point|punkt|bindestrich|leerzeichen|gui[o\u00f3]n|tiret|espace|espacio|punto"
)
# What code puts between: a declaration, a call that adds to a text, a name and its sign.
_CODE: Final = (
    r"const|let|var|final|String|str|echo|#?define|append|push|add|write|concat|text(?:tt|bf|it|rm)?|"
    r"[A-Za-z_]\w{0,15}(?=\.(?:append|push|add|write|concat)\()|"
    r"[A-Za-z_$]\w{0,15}(?=[\"'\]]{0,2}\s?(?:\+?=|:)\s?[\"']?[0-9A-Z])|[A-Z]\d(?= \")"
)
_MARKS: Final = r"[\s!-/:-@\[-^`{-~]"
_LABEL: Final = rf"(?:{_ORDINALS}|{_NOUNS}|{_CODE})(?:[ _]?\d{{1,2}}(?={_MARKS}))?(?![A-Za-z])"
_BETWEEN: Final = re.compile(
    rf"(?<=[0-9A-Z])(?i:(?:{_MARKS}{{1,8}}_?{_LABEL}){{1,5}}{_MARKS}{{1,8}})(?=[+0-9A-Z])"
)
_LONGEST: Final = 64  # characters of what stands between two groups
_TOKEN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:\d+|[A-Z][0-9A-Z]{0,7})(?![0-9A-Za-z])|(?<=_)\d\d?(?![0-9A-Za-z])"
)
_APART: Final = 40  # characters between a counter and its value
_FEWEST: Final = 3
_VALUE_MOST: Final = 9
_PARTS: Final = "part|block|group|chunk|piece|segment|digit|teil|ziffer|gruppe|bloque"
LABEL_SIGNS: Final = (
    f"(?i)(?:{_PARTS})[ _]?2[^0-9a-z]",
    f"(?i)(?:second|zweiter|segundo|deuxi\xc3\xa8me) (?:{_PARTS}|four|bloc|half)",
    "(?i)(?:ends with|ending in|ends in|starts with|endet mit) [0-9A-Z]",
    r"\.(?:append|push|add)\((?:[0-9]\)|[\"'][0-9A-Z]{1,8}[\"'])",
    r"\+= [\"'][0-9A-Z]{1,8}[\"']",
    "\\nB=[0-9A-Z]",
    "two = [\"'][0-9A-Z]",
    "_2=[\"']?[0-9A-Z]",
    "_2: [\"']?[0-9A-Z]",
    '2": ["\']?[0-9A-Z]',
    '\\n#define P?[A-Z_]{1,12}[0-9]? "[0-9A-Z]',
    "\\n2,[0-9A-Z]{1,6}\\n",
    r"\| 2 \| [0-9A-Z]",
    r"\(2\) [0-9A-Z]",
    " b\\) [0-9A-Z]",
    r"\\text[a-z]{0,2}\{[0-9A-Z]",
    *(
        f"(?:{'|'.join(f'{digit} {word}' for digit in range(10))}) [0-9]"
        for word in ("dot", "hyphen", "slash", "guion", "tiret", "espace", "espacio", "Bindestrich")
    ),
)


def without_labels(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield labels between groups, and columns of counters with values, as what is left of them."""
    counted = list(_counted(text))
    yield from counted or (
        (*match.span(), ", " if "," in match[0] else " ")
        for match in _BETWEEN.finditer(text)
        if match.end() - match.start() <= _LONGEST
    )


def _counted(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield stretches in which each other number counts on, with the numbers between these."""
    tokens = list(_TOKEN.finditer(text))
    first = 0
    while first + 2 * _FEWEST <= len(tokens):
        last = first
        while _counts_on(tokens, last):
            last += 2
        found = tokens[first + 1 : last + 2 : 2]
        if len(found) >= _FEWEST and _is_next(tokens, last + 2, tokens[last]) and first:
            found = tokens[first - 1 : last + 2 : 2]  # each counter stands behind its value
        values = [token[0] for token in found]
        if len(values) >= _FEWEST and max(map(len, values)) < _VALUE_MOST:
            begin = min(tokens[first].start(), found[0].start())
            yield begin, found[-1].end(), " ".join(values)
            first = last + 2
        else:
            first += 1


def _is_next(tokens: Sequence[re.Match[str]], place: int, before: re.Match[str]) -> bool:
    """Return whether a token is the next counter, behind which none has a value."""
    if place >= len(tokens) or not tokens[place][0].isdigit():
        return False
    if int(tokens[place][0]) != int(before[0]) + 1:
        return False
    after = (
        tokens[place + 1].start() if place + 1 < len(tokens) else tokens[place].end() + _APART + 1
    )
    return after - tokens[place].end() > _APART


def _counts_on(tokens: Sequence[re.Match[str]], place: int) -> bool:
    """Return whether the second token behind one is the next number, and all stand near."""
    if place + 3 >= len(tokens):
        return False
    now, value, then, behind = (token for token in tokens[place : place + 4])
    if not now[0].isdigit() or not then[0].isdigit() or int(then[0]) != int(now[0]) + 1:
        return False
    places = (now, value, then, behind)
    gaps = (after.start() - before.end() for before, after in pairwise(places))
    return len(now[0]) <= 2 and max(gaps) <= _APART
