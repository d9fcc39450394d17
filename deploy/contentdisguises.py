"""Disguises of content by people and programs, in two sets without a common form.

A form is a separator, another spelling, a container or an encoding that a reader undoes at once. No
form was made from a detector. The first set shows what to fix in a detector. The second set shows
whether the fix works for the kind of disguise or only for the examples.
"""

import base64
import html
import json
import random
import textwrap
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from deploy.contentcases import KINDS

Disguise = Callable[[random.Random, str], str]
_AMERICAN: Final = 15
_KEYCAP: Final = "\ufe0f\u20e3"


def plain_of(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def cut(text: str, *sizes: int) -> list[str]:
    """Return pieces of these sizes. The last size is repeated to the end."""
    pieces, at = list[str](), 0
    while at < len(text):
        size = sizes[min(len(pieces), len(sizes) - 1)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def groups_of(text: str) -> list[str]:
    """Return the groups in which card and account numbers are usually written."""
    bare = plain_of(text)
    return cut(bare, 4, 6, 5) if bare.isdigit() and len(bare) == _AMERICAN else cut(bare, 4)


def joined(*marks: str) -> Disguise:
    return lambda rng, text: rng.choice(marks).join(groups_of(text))


def _single(*marks: str) -> Disguise:
    return lambda rng, text: rng.choice(marks).join(plain_of(text))


def _around(before: str, behind: str) -> Disguise:
    """Return a disguise that puts each group between two marks."""
    return lambda _rng, text: "".join(f"{before}{group}{behind}" for group in groups_of(text))


def within(*forms: str) -> Disguise:
    """Return a disguise that puts the unchanged text in place of `$` in one of the forms."""
    return lambda rng, text: rng.choice(forms).replace("$", text)


def _bare_within(*forms: str) -> Disguise:
    return lambda rng, text: rng.choice(forms).replace("$", plain_of(text))


def _shifted(start: int) -> Disguise:
    """Return a disguise that writes digits in the Unicode block with its zero at `start`."""
    return lambda _rng, text: "".join(
        chr(start + int(letter)) if letter in "0123456789" else letter for letter in text
    )


def _strewn(*marks: str) -> Disguise:
    """Return a disguise that adds a mark after a third of the characters, chosen at random."""
    return lambda rng, text: "".join(
        letter + (rng.choice(marks) if rng.random() < 1 / 3 else "") for letter in text
    )


def replaced(**words: tuple[str, ...]) -> Disguise:
    def disguise(rng: random.Random, text: str) -> str:
        local, domain = text.split("@")
        domain = domain.replace(".", rng.choice(words["dot"]))
        return local + rng.choice(words["at"]) + domain

    return disguise


def _wide(_rng: random.Random, text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


def _bold(_rng: random.Random, text: str) -> str:
    """Return the text with letters and digits in mathematical bold."""
    ranges = (("A", "Z", 0x1D400), ("a", "z", 0x1D41A), ("0", "9", 0x1D7CE))
    for first, last, start in ranges:
        codes = range(ord(first), ord(last) + 1)
        text = text.translate({code: start + code - ord(first) for code in codes})
    return text


def _based(form: str) -> Disguise:
    return lambda _rng, text: base64.b64encode(form.replace("$", text).encode()).decode()


_ENCODED_FIRST: Final[dict[str, Disguise]] = {
    "percent signs": lambda _rng, text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "entities": lambda _rng, text: "".join(f"&#x{ord(letter):02X};" for letter in text),
    "base64 of JSON": _based('{"note": "see below", "value": "$"}'),
    "JSON in JSON": lambda _rng, text: json.dumps({"body": json.dumps({"value": text})}),
    "escapes of some": lambda rng, text: "".join(
        f"\\u{ord(letter):04x}" if rng.random() < 0.5 else letter for letter in text
    ),
    "no width": _strewn("\u200b", "\u200c", "\u200d", "\ufeff"),
    "full width": _wide,
    "a quotation": lambda _rng, text: "\n".join(f"> {line}" for line in text.split("\n")),
}
_ENCODED_SECOND: Final[dict[str, Disguise]] = {
    "percent twice": lambda _rng, text: quote("".join(f"%{byte:02X}" for byte in text.encode())),
    "decimal entities of some": lambda rng, text: "".join(
        f"&#{ord(letter):03};" if rng.random() < 0.5 else html.escape(letter) for letter in text
    ),
    "base64 of an address": lambda _rng, text: (
        base64.urlsafe_b64encode(f"https://x.example/?v={text}&n=1".encode()).decode().rstrip("=")
    ),
    "base64 in lines": lambda _rng, text: "\n".join(
        textwrap.wrap(base64.b64encode(f"The value of it is {text} as said".encode()).decode(), 32)
    ),
    "a log of JSON": lambda _rng, text: f'msg="{json.dumps({"v": text})[1:-1]}" level=info',
    "braced escapes": lambda _rng, text: "".join(f"\\u{{{ord(letter):x}}}" for letter in text),
    "hidden marks": _strewn("\u2063", "\u00ad", "\u180e", "\ufe0f"),
    "bold": _bold,
}
_NUMBER_FIRST: Final[dict[str, Disguise]] = {
    "marks": joined(":", ";", ",", "+", "~", "#", "*", "\\", "'", "="),
    "marks with blanks": joined(", ", "; ", " : ", " / ", " . ", " * ", " + ", " _ ", " ~ "),
    "dashes": joined("\u2013", " \u2014 ", "\u2212", "\u2010"),
    "dots in the middle": joined("\u00b7", "\u2022", " \u2022 ", "\u2026"),
    "one by one": _single(",", ".", " ", ", ", "_", "\n", "/"),
    "words between": joined(" then ", " and ", " next ", ", then ", " followed by "),
    "cells": lambda _rng, text: f"| {' | '.join(groups_of(text))} |",
    "a column": _around("| ", " |\n"),
    "a list": _around("- ", "\n"),
    "lines of a quotation": _around("> ", "\n"),
    "HTML": _around("<b>", "</b> "),
    "HTML cells": _around("<td>", "</td>"),
    "line breaks of HTML": joined("<br>", "<br/>\n", "&nbsp;", "&#160;"),
    "escaped lines": joined("\\n", "\\t", "\\r\\n"),
    "strings": lambda _rng, text: json.dumps(groups_of(text)),
    "an address": lambda _rng, text: f"https://x.example/a?p={'%20'.join(groups_of(text))}&b=1",
    "an option": _bare_within("--number=$", "-n $", "NUMBER=$;", "number:$", "(number=$)"),
    "markup": _bare_within("<number>$</number>", "**$**", "`$`", "[$]", "<i>$</i>", '"$"'),
    "pieces of code": lambda _rng, text: '" + "'.join(groups_of(text)).join('""'),
}
_NUMBER_SECOND: Final[dict[str, Disguise]] = {
    "other marks": joined("^", "!", "&", "@", "%", "$", "?", "`", "<", ">"),
    "doubled marks": joined("--", "__", "..", "//", "::", "||", "  -  ", " -- "),
    "arrows": joined("->", " => ", " > ", " \u2192 "),
    "other blanks": joined("\u2003", "\u00a0\u00a0", "\u202f", "\u3000"),
    "in brackets": _around("(", ") "),
    "in square brackets": _around("[", "]"),
    "quoted apart": _around("'", "', "),
    "pairs": lambda rng, text: rng.choice((" ", "-", ".", ":", ", ")).join(cut(plain_of(text), 2)),
    "single and wide": _single(" - ", " . ", "  ", "-", "|", " | ", ":"),
    "pauses": joined(" (pause) ", " ... ", " plus ", " dash ", " space ", " und dann "),
    "tabs and lines": joined("\t|\t", "\n\n", " \n", "|\n", ",\n"),
    "stars": _around("* ", "\n"),
    "quotation of a mail": _around(">> ", "\n"),
    "spans": _around('<span class="g">', "</span>"),
    "paragraphs": _around("<p>", "</p>\n"),
    "encoded blanks": joined("+", "%09", "%2D", "&#32;", "&#x2d;", "&ensp;"),
    "escaped blanks": joined("\\u0020", "\\x20", "\\u00a0", "\\\\n"),
    "a list in code": lambda _rng, text: f"parts = [{', '.join(map(repr, groups_of(text)))}]",
    "settings": _bare_within(
        "number: '$'", "set NUMBER $", '{"number":["$"]}', "number => $,", "a_$_b", "number\t$\n"
    ),
    "lines of code": lambda _rng, text: '"\n    "'.join(cut(plain_of(text), 8)).join('""'),
}
_CARD_FIRST: Final[dict[str, Disguise]] = {
    "Devanagari": _shifted(0x966), "circled": lambda _rng, text: "".join(
        "\u24ea\u2460\u2461\u2462\u2463\u2464\u2465\u2466\u2467\u2468"[int(digit)]
        for digit in plain_of(text)),
    "with its date": _bare_within("$|12|27|123", "$:12/27:123", "$ 12/27 123", "$,12/2027,123"),
    "as on a strip": _bare_within(";$=27121010000?", "%B$^DOE/JANE^2712101?"),
    "a name of a file": _bare_within("scan-$.png", "/cards/$/front.jpg", "card_$.pdf"),
    "numbers in code": lambda _rng, text: str([*map(int, cut(plain_of(text), 1))]),
}  # fmt: skip
_CARD_SECOND: Final[dict[str, Disguise]] = {
    "Bengali": _shifted(0x9E6),
    "keycaps": lambda _rng, text: _KEYCAP.join(plain_of(text)) + _KEYCAP,
    "sans-serif": _shifted(0x1D7E2),
    "with a name": _bare_within(
        "$;DOE;12;27", "Doe,$,1227", "$/1227/999 Jane Doe", "$\t12/27\t999",
    ),
    "as a track": _bare_within("%B$^DOE/J^271210100000?;$=27121010000?", "$D27121010000"),
    "a key": _bare_within("user:$:profile", "pan-$", "obj['$']", "/v1/cards/$?full=1"),
    "digits in code": lambda _rng, text: json.dumps([*plain_of(text)]),
}  # fmt: skip
_IBAN_FIRST: Final[dict[str, Disguise]] = {
    "small": lambda _rng, text: text.lower(),
    "country apart": lambda _rng, text: f"{text[:2]} {text[2:4]} {' '.join(groups_of(text[4:]))}",
    "country in brackets": lambda _rng, text: f"({text[:2]}) {plain_of(text)[2:]}",
    "other groups": lambda _rng, text: " ".join(cut(plain_of(text), 4, 8, 10)),
}
_IBAN_SECOND: Final[dict[str, Disguise]] = {
    "small in groups": lambda rng, text: rng.choice((" ", "-", "_")).join(groups_of(text.lower())),
    "check digits apart": lambda _rng, text: f"{text[:2]}-{text[2:4]}-{plain_of(text)[4:]}",
    "with its bank": _bare_within("$ (BIC COBADEFF370)", "IBAN$BIC", "$/EUR", "iban.$."),
    "fives": lambda rng, text: rng.choice((" ", "-", ".")).join(cut(plain_of(text), 5)),
}
_EMAIL_FIRST: Final[dict[str, Disguise]] = {
    "words": replaced(
        at=(" at ", " AT ", " (at) ", "[at]", " {at} "), dot=(" dot ", "(dot)", "[dot]")
    ),
    "words in marks": replaced(
        at=("_at_", "-at-", "*at*", "/at/", "<at>"), dot=(".", "_dot_", "-dot-")
    ),
    "at alone": replaced(at=("(at)", " [at] ", " at ", "(a)", "[@]", "(@)"), dot=(".",)),
    "dot alone": replaced(at=("@",), dot=("(dot)", " dot ", "[.]", " . ", "(.)")),
    "other signs": replaced(
        at=("\uff20", "\ufe6b", "&#64;", "%40", "&commat;"), dot=(".", "\u3002")
    ),
    "broken": replaced(at=("@\n", "\n@", " @\n"), dot=(".",)),
    "links": within(
        "[me](mailto:$)", '<a href="mailto:$">', "mailto:$,", "<$>", "sip:$", "xmpp:$/x"
    ),
    "settings": within("email: $", "EMAIL=$;", "--to=$", '"to":"$"', "to=$&cc=", "user.email $"),
    "cells": within("| $ | ok |", "|$|", "a,$,b", "a;$;b", "<td>$</td>", "\t$\t"),
}
_EMAIL_SECOND: Final[dict[str, Disguise]] = {
    "foreign words": replaced(
        at=(" (arroba) ", "(\u00e4t)", " [\u00e4t] ", " arobase "),
        dot=(" punto ", "(punkt)", " point "),
    ),
    "doubled brackets": replaced(
        at=("((at))", "[[at]]", " <<at>> ", "{{at}}"), dot=("((dot))", "[[dot]]", "."),
    ),
    "with a plea": replaced(at=("@NOSPAM.", "@REMOVE-THIS."), dot=(".",)),
    "capitals": replaced(
        at=("(AT)", " AT ", "[AT]", "-AT-", "_AT_"), dot=("(DOT)", " DOT ", ".", "[DOT]"),
    ),
    "spaced out": lambda _rng, text: " ".join(text),
    "tabs": replaced(at=("\t@\t", "@ ", " @", "\u00a0@\u00a0"), dot=(".",)),
    "code": within("send('$')", "git commit --author='Jane <$>'", "user:$:x", "\\'$\\'", "/u/$/x"),
    "sentences": within("($)", "$!", "\u00ab$\u00bb", "$;", "it is:$.", "\u201c$\u201d", "$\u2026"),
    "escaped sign": replaced(at=("\\u0040", "\\x40", "\\@", "&#x40;", "%2540"), dot=(".", "\\.")),
}  # fmt: skip
_SECRET_FIRST: Final[dict[str, Disguise]] = {
    "an address": within(
        "https://x.example/a?key=$&v=1", "https://$@git.example/a.git", "https://u:$@x.example/"
    ),
    "a shell": within(
        "export TOKEN=$", 'curl -H "X-Key: $" x', "TOKEN='$' ./run", "set -x K $", "echo $ | login"
    ),
    "YAML": within("key: $", "key: '$'", "key: >-\n  $\n", "- $", "env:\n  - value: $"),
    "a connection": within(
        "Server=db;Key=$;Timeout=3", "amqp://u:$@mq/v", "redis://:$@cache:6379/0"
    ),
    "pieces of code": lambda rng, text: '" + "'.join(cut(text, rng.randint(8, 20))).join('""'),
    "broken": lambda rng, text: rng.choice(("\n", "\\\n", " \n  ", "\n> ")).join(cut(text, 30)),
    "markup": within("`$`", "**$**", "<code>$</code>", "|$|", "<k>$</k>", "[$]", "```\n$\n```"),
    "JSON": within('{"k":"$"}', '{\\"k\\":\\"$\\"}', "{'k': '$'}", '["$"]', "k=$,", "k:$"),
}
_SECRET_FORMS: Final[dict[str, Disguise]] = {
    "a path": within("https://hooks.example/$/send", "wss://x.example/?t=$#top", "s3://$:x@b/"),
    "other shells": within(
        "$Env:K = '\0'", "setx K \0", "docker run -e K=\0 x", "--key \0", "-k\0",
    ),
    "files of tools": within(
        "ENV KEY $", "//npm.example/:_authToken=$", "machine x login y password $",
        'key = "$" # old',
    ),
    "other connections": within(
        "mongodb+srv://u:$@c.example/db", "AccountName=a;AccountKey=$;End=x",
        "jdbc:x://h/d?user=u&password=$",
    ),
    "spaces": lambda rng, text: rng.choice((" ", "  ")).join(cut(text, rng.choice((1, 4, 10)))),
    "concatenated": lambda rng, text: (
        rng.choice(("' .\n '", '"\n  "', "' + '", '" & "')).join(cut(text, 16)).join("''")
    ),
    "sentences": within(
        "It is $, right?", "\u201c$\u201d", "($).", "token\u2192$", "the key:$!", "<$>",
    ),
    "HTML": within(
        "<input value='$'>", '<meta content="$">', "data-k=$ ", "<!-- $ -->", "&quot;$&quot;",
    ),
}  # fmt: skip


def _filled(make: Disguise) -> Disguise:
    """Return the disguise with NUL replaced by the text, because shells use `$` themselves."""
    return lambda rng, text: make(rng, text).replace("\0", text)


_SECRET_SECOND: Final[dict[str, Disguise]] = {
    name: _filled(make) for name, make in _SECRET_FORMS.items()
}
FIRST: Final[Mapping[str, Mapping[str, Disguise]]] = {
    "card": _CARD_FIRST | _NUMBER_FIRST | _ENCODED_FIRST,
    "iban": _IBAN_FIRST | _NUMBER_FIRST | _ENCODED_FIRST,
    "email": _EMAIL_FIRST | _ENCODED_FIRST,
    "secret": _SECRET_FIRST | _ENCODED_FIRST,
}
SECOND: Final[Mapping[str, Mapping[str, Disguise]]] = {
    "card": _CARD_SECOND | _NUMBER_SECOND | _ENCODED_SECOND,
    "iban": _IBAN_SECOND | _NUMBER_SECOND | _ENCODED_SECOND,
    "email": _EMAIL_SECOND | _ENCODED_SECOND,
    "secret": _SECRET_SECOND | _ENCODED_SECOND,
}
_SENTENCES: Final = (
    "Could you look at this for me: {} - is it right?", "{}", "Translate into French.\n{}\n",
    "My colleague sent {} this morning.", "What does the line say?\n\n    {}\n",
    "ref 12, page 4: {}", "1. {}\n2. nothing else", "\u00bfQu\u00e9 es {}?",
)  # fmt: skip


def disguised(rng: random.Random, kind: str, form: Disguise) -> str:
    """Return a sentence that contains content of a kind in the given disguise."""
    return rng.choice(_SENTENCES).replace("{}", form(rng, KINDS[kind](rng)))
