"""Addresses of e-mail, also with words and brackets in the places of their marks."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.content.domains import TOP_DOMAINS
from gateway.content.folding import fold
from gateway.content.spans import Span

_AT: Final = r"(?:[ \t]?\n?@\n?[ \t]?|[*_~`]{1,3}@[*_~`]{1,3}| ?[\[({<] ?(?:at|@) ?[\])}>] ?)"
_BARE_DOT: Final = r"(?:\.| ?[\[({] ?(?:dot|\.) ?[\])}] ?)"
_DOT: Final = rf"(?:{_BARE_DOT}| \. )"
# What ends an address: letters of scripts without blanks and the mark of emphasis may stand behind.
_END: Final = r"(?![A-Za-z0-9\u00c0-\u024f(@]|_\w|-\w|\.\w+\()"
_TOP: Final = "(xn--[a-z0-9-]{2,40}|[a-z]{2,24})"
_EMAIL: Final = re.compile(
    rf"([\w.%+'-]{{1,64}}){_AT}((?:[\w-]{{1,63}}{_DOT}){{1,6}}){_TOP}{_END}", re.IGNORECASE
)
# A sentence may go on behind a point with blanks around it.
_BARE_EMAIL: Final = re.compile(
    rf"([\w.%+'-]{{1,64}}){_AT}((?:[\w-]{{1,63}}{_BARE_DOT}){{1,6}}){_TOP}{_END}", re.IGNORECASE
)
_SPOKEN: Final = re.compile(
    r"(?<![\w.@-])([\w-]+(?: dot [\w-]+){0,3}) at ([\w-]+(?: dot [\w-]+){0,3}) dot "
    r"([a-z]{2,24})(?![\w-])",
    re.IGNORECASE,
)
_LEFT, _RIGHT = r"[\[({<]{1,2} ?", r" ?[\])}>]{1,2}"
# What the sign is called, in which languages also as they are folded; and the point.
_CALLED_AT: Final = (
    "arobase", "arroba", "chiocciola", "klammeraffe", "apenstaartje", "ma\u0142pa", "malpa",
    "\u00e4t", "aet", "at-sign", "at sign", "at symbol", "snabel-a", "snabela", "kr\u00f8llalfa",
    "alfakr\u00f8ll", "kukac", "zavin\u00e1\u010d", "zavinac", "miukumauku", "sobaka", "majmun",
    "\u0441\u043e\u0431\u0430\u043a\u0430",
)  # fmt: skip
_CALLED_DOT: Final = (
    "dot", "punkt", "point", "punto", "ponto", "punt", "kropka", "period", "te\u010dka", "tecka",
    "prik", "punktum", "piste", "nokta", "tochka", "\u0442\u043e\u0447\u043a\u0430",
)  # fmt: skip
_NAMES_OF_AT: Final = "|".join(dict.fromkeys((*_CALLED_AT, *map(fold, _CALLED_AT))))
_DOT_NAMES: Final = tuple(dict.fromkeys((*_CALLED_DOT, *map(fold, _CALLED_DOT))))
_AT_WORDS: Final = rf"at|@|a|\u00e6t|{_NAMES_OF_AT}"
_DOT_WORDS: Final = rf"\.|{'|'.join(_DOT_NAMES)}"
_SPELLED_DOT: Final = (
    rf"(?:\.| ?{_LEFT}(?:{_DOT_WORDS}){_RIGHT} ?| (?:{_DOT_WORDS}) | ?[_*/|~:#-]dot[_*/|~:#-] ?)"
)
# Any mixture of marks and words, of which one is a word at least.
_SPELLED: Final = re.compile(
    rf"(?<![\w.%+@-])([\w.%+'-]{{1,64}}?)"
    rf"(@| ?{_LEFT}(?:{_AT_WORDS}){_RIGHT} ?| ?[_*/|~:#-]at[_*/|~:#-] ?| (?:at|{_NAMES_OF_AT}) )"
    rf"((?:[a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])??{_SPELLED_DOT}){{1,6}}){_TOP}{_END}",
    re.IGNORECASE,
)
_SURE_TOPS: Final = frozenset(
    (
        *("com", "org", "net", "edu", "gov", "mil", "info", "biz", "io", "eu", "de", "uk", "fr"),
        *("es", "it", "nl", "be", "at", "ch", "br", "jp", "cn", "in", "au", "ca", "us", "ru", "se"),
        *("no", "dk", "fi", "pl", "cz", "pt", "ie", "gr", "tr", "mx", "ar", "kr"),
    )
)
"""Ends of names that are hardly ever a name in code."""
_FILES: Final = re.compile(
    r"(?:^www|[._](?:md|html?|php|py|js|ts|css|json|ya?ml|txt|pdf|png|jpe?g|csv|log|sh|rb|go|rs|java))$",
    re.IGNORECASE,
)
_DOTS_SPELLED: Final = (*_DOT_NAMES, "[.", "(.", "{.", "<.", "[ .", "( .")
"""One is behind the sign of an address that is spelled; a pattern takes ten times as long."""
_GAP: Final = re.compile(r"[^0-9A-Za-z@]{1,4}(?=[0-9A-Za-z])")  # between letters that stand apart
_SPELLED_BEFORE, _SPELLED_BEHIND = 90, 90
# Sites are spoken of so too: "look at example dot com".
_WRITES: Final = re.compile(r"mail|contact|write|reach|address", re.IGNORECASE)
_NEAR: Final = 40
_SPOKEN_BEFORE: Final = 140  # characters before the last point of an address in words


def _in_bytes(word: str) -> str:
    return "".join(
        letter if letter.isascii() else "".join(f"\\x{byte:02x}" for byte in letter.encode())
        for letter in word
    )


EMAIL_SIGNS: Final = (
    "@",
    r"(?i)(?:\(at|\( at|\[at|\[ at|\{at|\{ at|<at|< at) ?[\])}>]",
    "(?i) dot [a-z]{2}",
    r"(?i)[_*/|~:#]at[_*/|~:#]",
    r"(?i)[_*/|~:#-]dot[_*/|~:#-] ?[a-z]{2}",
    r"(?i)[a-z0-9] (?:at|arobase|arroba) [a-z0-9-]{1,30}\.[a-z]{2}",
    *(f"(?i) {_in_bytes(name)} [a-z0-9]" for name in _NAMES_OF_AT.split("|")),
    "[A-Za-z0-9]-AT-[A-Za-z0-9]",
    r"(?i)[\[({<] ?(?:a|arroba|arobase|\xc3\xa4t|dot|punkt|point|punto|ponto) ?[\])}>]",
    r"(?i)[\[({<] ?(?:klammeraffe|chiocciola) ?[\])}>]",
)
_JOIN: Final = re.compile(r"[\"'`}]@[\"'`{$]")
_JOINED: Final = 100  # characters around a sign in which both parts are strings
_DOMAIN: Final = re.compile(r"[\"'`]((?:[a-z0-9-]{1,63}\.){1,4}([a-z]{2,6}))[\"'`]", re.IGNORECASE)
_STRING: Final = re.compile(r"[\"'`]([^\"'`\s]{1,64})[\"'`]")
_LOCAL: Final = re.compile(r"[A-Za-z][\w.%+-]*")
_EMPHASIS: Final = frozenset("*_~`")
_INDENTS: Final = frozenset(("  ", " \t", "\t ", "\t\t", "\n ", "\n\t"))
_BARE_DOMAIN: Final = re.compile(r"[\w.-]+")
_DOTTED: Final = re.compile(
    rf"{_LEFT}(?:{_DOT_WORDS}){_RIGHT}| (?:{_DOT_WORDS}) | ?[_*/|~:#-]dot[_*/|~:#-] ?",
    re.IGNORECASE,
)
_NO_DOMAIN: Final = re.compile(r"[^\w.-]")
_SCALE: Final = re.compile(r"\d+x\.")
_LOCAL_PART: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'-"


def find_emails(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield addresses whose last part is a domain that exists."""
    done = 0
    for place in places:
        if (spaced := _spaced_at(text, place)) is not None:
            done = spaced.end
            yield spaced
            continue
        match = None if _is_indented(text, place) else _match_at(text, place)
        if match is None and (joined := _joined_at(text, place)) is not None:
            done = joined.end
            yield joined
        if match is None or match.start() < done:
            continue
        done = match.end()
        domain, top = match[match.re.groups - 1], match[match.re.groups]
        if match.re is _SPELLED or not _BARE_DOMAIN.fullmatch(domain):
            domain = _NO_DOMAIN.sub("", _DOTTED.sub(".", domain))
        yield Span("email", *match.span(), f"{match[1]}@{domain.rstrip('.')}.{top}".lower())


def _joined_at(text: str, place: int) -> Span | None:
    """Return the strings of code near a sign that are put together with it."""
    if _JOIN.match(text, max(0, place - 2), place + 1) is None:
        return None
    around = max(0, place - _JOINED), place + _JOINED
    domain = next(
        (each for each in _DOMAIN.finditer(text, *around) if each[2].lower() in _SURE_TOPS), None
    )
    strings = (each for each in _STRING.finditer(text, *around) if _LOCAL.fullmatch(each[1]))
    if domain is None:
        return None
    local = next((each for each in strings if each.start() != domain.start()), None)
    if local is None:
        return None
    begin, end = min(local.start(1), domain.start(1)), max(local.end(1), domain.end(1))
    return Span("email", begin, end, f"{local[1]}@{domain[1]}".lower())


def _is_indented(text: str, place: int) -> bool:
    """Return whether more stands before the sign than an address has, as in decorators of code."""
    return place > 2 and text[place - 1] == "@" and text[place - 3 : place - 1] in _INDENTS


def _match_at(text: str, place: int) -> re.Match[str] | None:
    """Return the address around the sign that ends at a place."""
    return _marked_at(text, place) or _spelled_at(text, place)


def _marked_at(text: str, place: int) -> re.Match[str] | None:
    """Return the address whose sign, a mark or a word in brackets, ends at a place."""
    if text[place - 1].isalpha():
        found = _SPOKEN.finditer(text, max(0, place - _SPOKEN_BEFORE), place + 24)
        spoken = next((match for match in found if match.end() >= place), None)
        return spoken if spoken is not None and _is_spoken(text, spoken) else None
    begin = _local_begin(text, place)
    if begin is None:
        return None
    readings = (_EMAIL.match(text, begin), _BARE_EMAIL.match(text, begin))
    return next((match for match in readings if match is not None and _is_address(match)), None)


def _spaced_at(text: str, place: int) -> Span | None:
    """Return the address around the sign before a place whose letters all stand apart alike."""
    gap = _GAP.match(text, place)
    if gap is None or text[place - 2 - len(gap[0]) : place - 1][1:] != gap[0]:
        return None
    step = len(gap[0]) + 1
    begin, end = place - 1, place
    while begin - step >= 0 and _may_stand_apart(text, begin - step, gap[0]):
        begin -= step
    while _may_stand_apart(text, end + step - 1, "") and text.startswith(gap[0], end):
        end += step
    plain = _EMAIL.fullmatch(text[begin:end:step])
    if plain is None or plain[3].lower() not in TOP_DOMAINS:
        return None
    return Span("email", begin, end, plain[0].lower())


def _may_stand_apart(text: str, place: int, gap: str) -> bool:
    """Return whether a letter of an address stands there, and this behind it."""
    letter = text[place : place + 1]
    return letter != "" and letter in _LOCAL_PART and text.startswith(gap, place + 1)


def _spelled_at(text: str, place: int) -> re.Match[str] | None:
    """Return the address in words around a place, unless it may be a site or code."""
    begin, end = max(0, place - _SPELLED_BEFORE), place + _SPELLED_BEHIND
    if text[place - 1] == "@":
        behind = text[place:end].lower()
        if not any(word in behind for word in _DOTS_SPELLED):
            return None
    for match in _SPELLED.finditer(text, begin, end):
        if match.start() < place <= match.end() and _is_spelled(text, match):
            return match
    return None


def _is_spelled(text: str, match: re.Match[str]) -> bool:
    local, at, domain, top = match[1], match[2], match[3], match[4].lower()
    if top not in TOP_DOMAINS or not any(map(str.isalpha, local)):
        return False
    if at == "@":
        return True
    has_words = not _BARE_DOMAIN.fullmatch(domain) or "dot" in domain.lower()
    if at.strip()[0] in "[({<":
        return has_words or top in _SURE_TOPS
    is_told = at.strip() != "at" or not local.isalpha() or _is_named(text, match.start())
    if has_words:
        return is_told or any(mark in domain for mark in "[({_*")
    is_site = text[match.end() : match.end() + 1] in ("/", ":") and at == " at "
    if top not in _SURE_TOPS or _FILES.search(local) or is_site:
        return False
    return is_told and (at.strip() != "-at-")


def _is_named(text: str, start: int) -> bool:
    return _WRITES.search(text, max(0, start - _NEAR), start) is not None


def _is_spoken(text: str, match: re.Match[str]) -> bool:
    """Return whether words are an address, and no site that somebody looks at."""
    is_named = _is_named(text, match.start())
    return match[3].lower() in TOP_DOMAINS and (" dot " in match[1].lower() or is_named)


def _local_begin(text: str, place: int) -> int | None:
    """Return where the part before the sign that ends at `place` begins; None: there is none."""
    if text[place - 1] == "@":
        end, blank = place - 1, text[place : place + 1] in (" ", "\t", "\n")
    else:
        end, blank = max(text.rfind(mark, max(0, place - 6), place) for mark in "[({<"), True
    if text[end - 1 : end] in _EMPHASIS and text[place : place + 1] in _EMPHASIS:
        end -= len(text[max(0, end - 3) : end]) - len(text[max(0, end - 3) : end].rstrip("*_~`"))
    if end > 1 and text[end - 1] == "\n":
        end, blank = end - 1, True
    is_apart = end > 0 and text[end - 1] in " \t"
    end -= is_apart
    first = max(0, end - 65)
    begin = first + len(text[first:end].rstrip(_LOCAL_PART))
    while begin > first and text[begin - 1].isalnum():  # letters beyond ASCII
        begin -= 1
    if is_apart and not blank and text[begin:end].isalpha():
        return None  # a word before somebody's name
    return begin if begin < end else None


def _is_address(match: re.Match[str]) -> bool:
    top, whole = match[3].lower(), match[0]
    if top not in TOP_DOMAINS and not top.startswith("xn--"):
        return False
    if match[2][:1].isdigit() and _SCALE.match(match[2]):  # icon@2x.png
        return False
    if "\n" in whole and (
        top not in _SURE_TOPS or match.string[match.end() : match.end() + 1] == "/"
    ):
        return False  # a decorator in code, or a name of a package
    if " " not in whole:
        return True
    return any(mark in whole for mark in "[({") or " . " in match[2] or match[3].islower()
