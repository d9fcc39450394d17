"""A third set of disguises, written after detectors were fixed with the first two."""

import base64
import json
from collections.abc import Mapping
from typing import Final

from deploy.contentdisguises import Disguise, cut, groups_of, joined, plain_of, replaced, within

_THAI, _MONO = 0xE50, 0x1D7F6


def _digits_from(start: int) -> Disguise:
    return lambda _rng, text: "".join(
        chr(start + int(letter)) if letter.isdecimal() else letter for letter in text
    )


_ENCODED: Final[dict[str, Disguise]] = {
    "base64 twice": lambda _rng, text: base64.b64encode(
        base64.b64encode(f"this is it: {text}".encode())
    ).decode(),
    "hexadecimal": lambda _rng, text: f"it is {text}.".encode().hex(" ").replace(" ", ""),
    "long escapes": lambda _rng, text: "".join(f"\\U{ord(letter):08X}" for letter in text),
    "mixed escapes": lambda rng, text: "".join(
        rng.choice((letter, f"&#{ord(letter)};", f"&#x{ord(letter):x};")) for letter in text
    ),
    "an address of some": lambda rng, text: (
        "https://x.example/?q="
        + "".join(
            f"%{ord(letter):02X}" if rng.random() < 0.5 or not letter.isalnum() else letter
            for letter in text
        )
    ),
    "a string in arguments": lambda _rng, text: json.dumps(
        {"name": "pay", "arguments": json.dumps({"to": text, "n": 1})}
    ),
    "joiners": lambda _rng, text: "\u2060".join(text),
    "base32": lambda _rng, text: base64.b32encode(f"it is {text}".encode()).decode(),
}
_NUMBERS: Final[dict[str, Disguise]] = {
    "Thai": _digits_from(_THAI), "monospaced": _digits_from(_MONO),
    "rows of HTML": joined("</li><li>", "<br />", "<hr>", "</tr><tr>", "</div>\n<div>"),
    "TeX": joined("~", "\\,", "$ $", "{}", "\\ "),
    "SQL": lambda _rng, text: "'||'".join(groups_of(text)).join("''"),
    "a call": lambda _rng, text: f"concat({', '.join(map(repr, groups_of(text)))})",
    "a tuple": lambda _rng, text: f"({','.join(groups_of(text))})",
    "YAML": lambda _rng, text: "".join(f"\n  - '{group}'" for group in groups_of(text)),
    "a numbered list": lambda _rng, text: "".join(
        f"\n{number}) {group}" for number, group in enumerate(groups_of(text), 1)
    ),
    "other languages": joined(" puis ", " luego ", " danach ", ", e ", " et "),
    "and finally": joined(", and ", " and then ", "; then ", " plus "),
    "marks in a row": joined("***", ";;", "##", "=-=", "~~", "- -"),
    "signs": joined(" \u22c5 ", "\u2192", " \u25cf ", " \u2758 ", "\u2795"),
    "emphasis": lambda _rng, text: " ".join(f"**{group}**" for group in groups_of(text)),
    "members": lambda _rng, text: json.dumps(
        {f"part{number}": group for number, group in enumerate(groups_of(text))}
    ),
    "sevens": lambda rng, text: rng.choice((" ", "-")).join(cut(plain_of(text), 8, 4)),
    "a matrix": lambda _rng, text: "\n".join(
        " ".join(plain_of(text)[at : at + 4]) for at in range(0, len(plain_of(text)), 4)
    ),
}  # fmt: skip
_EMAIL: Final[dict[str, Disguise]] = {
    "marks in brackets": replaced(at=(" (@) ", "[@]", "{@}"), dot=(" (.) ", "[.]", ".")),
    "wide brackets": replaced(
        at=(" [ at ] ", " ( at ) ", "( at )"), dot=(" [ dot ] ", ".", " ( dot ) "),
    ),
    "stars": replaced(at=("*at*", "*AT*"), dot=("*dot*", ".")),
    "spans": replaced(at=("<span>@</span>", "<b>@</b>", "@<wbr>"), dot=(".",)),
    "entities": replaced(at=("&#064;", "&#x00040;", "&commat;"), dot=(".", "&#46;", "&period;")),
    "pieces of code": replaced(at=('" + "@" + "', "' . '@' . '"), dot=(".",)),
    "blanks": replaced(at=(" @ ", "@ "), dot=(".", " . ")),
    "link": within("mailto%3A$".replace("@", "%40"), "mailto:$?cc=a", "[$](x)", "<$>,"),
    "directory": within("mail=$,ou=x", "EMAIL;TYPE=work:$", "ssh $:22", "git@x:$", "To: Jane <$>"),
    "other words": replaced(
        at=(" (arroba) ", " [\u00e4t] ", "(AT)"), dot=(" (punto) ", "(punkt)", "(DOT)"),
    ),
    "words": replaced(at=(" at ",), dot=(" [dot] ", "(dot)", " {dot} ")),
    "quotes": within("'$'", '\\"$\\"', "\u2018$\u2019", "`$`", "\u201e$\u201c"),
}  # fmt: skip
_SECRET: Final[dict[str, Disguise]] = {
    "headers": within("Authorization: token $", "X-Api-Key: $", "Cookie: s=$; a=b", "-u $: x"),
    "files": within(
        "ARG K=$", "key: !secret $", "[a]\nk=$\n", "k: {v: $}", "K=$ # old", "k := `$`",
    ),
    "code": within("define('K', '$');", "b'$'", "f'{x}$'", "`${a}$`", 'new X("$")', 'r"$"'),
    "addresses": within("https://oauth2:$@git.x/a", "x.example/$", "?access_token=$&a=1", "#t=$"),
    "markup": within('<a k="$"/>', "<k>\n$\n</k>", "| k | $ |", "[$](x)", "\\texttt{$}", "_$_"),
    "SQL": lambda rng, text: "' || '".join(cut(text, rng.randint(9, 20))).join("''"),
    "adjacent strings": lambda _rng, text: '" "'.join(cut(text, 24)).join('""'),
    "a list": lambda _rng, text: json.dumps(cut(text, 24)) + '.join("")',
    "lines": lambda rng, text: rng.choice(("\n", "\n    ", "\r\n")).join(cut(text, 40)),
    "a heredoc": within("cat <<X\n$\nX", "echo '$' > f", "printf %s $ | x", "$ ||"),
}  # fmt: skip
THIRD: Final[Mapping[str, Mapping[str, Disguise]]] = {
    "card": _NUMBERS | _ENCODED, "iban": _NUMBERS | _ENCODED,
    "email": _EMAIL | _ENCODED, "secret": _SECRET | _ENCODED,
}  # fmt: skip
