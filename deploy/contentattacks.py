"""Ways to hide content from a pattern detector, by kind, and clean look-alikes.

Included are forms that a person or a program reads at a glance. Forms that need a key or a guess
are not included.
"""

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from deploy.contentcases import KINDS

Hide = Callable[[random.Random, str], str]


def _digits_of(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _grouped(text: str, mark: str, *sizes: int) -> str:
    """Return the text in groups of these sizes. The last size is repeated to the end."""
    parts, at = list[str](), 0
    while at < len(text):
        size = sizes[min(len(parts), len(sizes) - 1)]
        parts.append(text[at : at + size])
        at += size
    return mark.join(parts)


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum())


def _by_mark(mark: str, *sizes: int) -> Hide:
    return lambda _rng, text: _grouped(_digits_of(text), mark, *sizes)


_CARD: Final[Mapping[str, Hide]] = {
    "bars": _by_mark("|", 4), "cells": _by_mark(" | ", 4), "tabs": _by_mark("\t", 4),
    "slashes": _by_mark("/", 4), "underscores": _by_mark("_", 4), "lines": _by_mark("\n", 4),
    "pairs": _by_mark(" ", 2), "threes": _by_mark("-", 3), "fives": _by_mark(" ", 5),
    "eights": _by_mark(" ", 8), "spaced dashes": _by_mark(" - ", 4), "wide": _by_mark("  ", 4),
    "one by one": _by_mark("-", 1), "one by one and wide": _by_mark("  ", 1),
    "card glued": lambda _rng, text: f"card{_digits_of(text)}",
    "number glued": lambda _rng, text: f"pan_no{_digits_of(text)}",
    "expiry behind": lambda _rng, text: f"{_grouped(_digits_of(text), ' ', 4)} 12/27 123",
    "named in JSON": lambda _rng, text: f'{{"number":"{_digits_of(text)}","cvc":"123"}}',
    "in an address": lambda _rng, text: f"https://pay.example/?pan={_digits_of(text)}&x=1",
    "after a number": lambda _rng, text: f"item 12: {_grouped(_digits_of(text), '-', 4)}",
    "among cards": lambda rng, text: "\n".join(
        [KINDS["card"](rng), _grouped(_digits_of(text), " ", 4), KINDS["card"](rng)]
    ),
    "two of them": lambda _rng, text: f"{_digits_of(text)},{_digits_of(text)}",
}  # fmt: skip
_IBAN: Final[Mapping[str, Hide]] = {
    "small letters": lambda _rng, text: text.lower(),
    "dashes": lambda _rng, text: _grouped(_plain(text), "-", 4),
    "two blanks": lambda _rng, text: _grouped(_plain(text), "  ", 4),
    "dots": lambda _rng, text: _grouped(_plain(text), ".", 4),
    "lines": lambda _rng, text: _grouped(_plain(text), "\n", 4),
    "named": lambda _rng, text: f"IBAN:{_plain(text)}",
    "glued": lambda _rng, text: f"IBAN{_plain(text)}",
    "quoted": lambda _rng, text: f'"iban": "{text}"',
    "in brackets": lambda _rng, text: f"({text})",
    "in cells": lambda _rng, text: f"|{text}|",
    "slashes": lambda _rng, text: _grouped(_plain(text), "/", 4),
    "underscores": lambda _rng, text: _grouped(_plain(text), "_", 4),
    "lines of eight": lambda _rng, text: _grouped(_plain(text), "\r\n", 8),
    "one by one": lambda _rng, text: _grouped(_plain(text), " ", 1),
    "bars": lambda _rng, text: _grouped(_plain(text), " | ", 4),
    "bullets": lambda _rng, text: _grouped(_plain(text), "\u2022", 4),
}
_EMAIL: Final[Mapping[str, Hide]] = {
    "capitals": lambda _rng, text: text.upper(),
    "link": lambda _rng, text: f"mailto:{text}?subject=hi",
    "in angles": lambda _rng, text: f"Jane <{text}>",
    "at in brackets": lambda _rng, text: text.replace("@", " [at] "),
    "at and dots": lambda _rng, text: text.replace("@", "(at)").replace(".", "(dot)"),
    "blanks": lambda _rng, text: text.replace("@", " @ "),
    "in curly brackets": lambda _rng, text: text.replace("@", " {at} "),
    "end of a sentence": lambda _rng, text: f"Write to {text}.",
    "quoted": lambda _rng, text: f"'{text}',",
    "in an address": lambda _rng, text: f"https://x.example/u/{text}/edit",
    "before a point": lambda _rng, text: f"{text} . Thanks",
    "emphasis": lambda _rng, text: f"_{text}_",
    "Chinese around": lambda _rng, text: f"\u90ae\u7bb1{text}\u8c22\u8c22",
    "in words": lambda _rng, text: f"e-mail {text.replace('@', ' at ').replace('.', ' dot ')}",
}
_PHONE_WORDS: Final = (
    "Fon", "Festnetz:", "Telefonnummer", "Handynummer:", "T\u00e9l. :", "t\u00e9l\u00e9phone :",
    "Appelez-moi au", "tel\u00e9fono",
)  # fmt: skip


def _named_phone(rng: random.Random, _text: str) -> str:
    """Return a phone number of one country after a word of another language."""
    number = "".join(rng.choice(string.digits) for _ in range(8))
    mark = rng.choice((" ", ".", "-"))
    return f"{rng.choice(_PHONE_WORDS)} 0{rng.randint(1, 7)}{mark}{_grouped(number, mark, 2)}"


_PHONE: Final[Mapping[str, Hide]] = {
    "link": lambda _rng, text: f"tel:{text}" if "phone" not in text else text,
    "named": lambda _rng, text: text if "phone" in text else f"mobile {text}",
    "no-break": lambda _rng, text: text.replace(" ", "\u00a0"),
    "other dashes": lambda _rng, text: text.replace("-", "\u2011"),
    "in brackets": lambda _rng, text: f"[{text}]",
    "quoted": lambda _rng, text: f'"phone": "{text}"',
    "bracket before": lambda _rng, text: f"(call: {text} or write)",
    "in other languages": _named_phone,
    "in cells": lambda _rng, text: f"| {text} |",
}
_IP: Final[Mapping[str, Hide]] = {
    "port": lambda _rng, text: f"{text}:8080" if "." in text else f"[{text}]:80",
    "link": lambda _rng, text: f"http://{text}/x" if "." in text else f"http://[{text}]/x",
    "defanged": lambda _rng, text: text.replace(".", "[.]"),
    "round": lambda _rng, text: text.replace(".", "(.)"),
    "quoted": lambda _rng, text: f'"host": "{text}"',
    "assigned": lambda _rng, text: f"client={text},",
    "user": lambda _rng, text: f"root@{text}" if "." in text else text,
}
_HEXADECIMAL: Final = "0123456789abcdef"
_ALNUM: Final = string.ascii_letters + string.digits
# Keys of services that the generators lack, by the services' documents: prefix, then length and
# characters of the rest.
_SERVICES: Final = (
    ("shpat_", 32, _HEXADECIMAL), ("sq0atp-", 22, _ALNUM), ("key-", 32, _HEXADECIMAL),
    ("dp.pt.", 43, _ALNUM), ("NRAK-", 27, string.ascii_uppercase + string.digits),
    ("ATATT3xFfGF0", 180, _ALNUM), ("rubygems_", 48, _HEXADECIMAL), ("dckr_pat_", 27, _ALNUM),
    ("sbp_", 40, _HEXADECIMAL), ("pul-", 40, _HEXADECIMAL), ("figd_", 40, _ALNUM),
    ("r8_", 37, _ALNUM), ("pplx-", 48, _ALNUM), ("lin_api_", 40, _ALNUM), ("nvapi-", 64, _ALNUM),
    ("5048201517:AA", 33, _ALNUM), ("Grstk4ExbLYWQZ.atlasv1.", 64, _ALNUM),
)  # fmt: skip


def _of_service(rng: random.Random, _text: str) -> str:
    begin, size, letters = rng.choice(_SERVICES)
    return begin + "".join(rng.choice(letters) for _ in range(size))


def _cut_key(rng: random.Random, _text: str) -> str:
    """Return the last lines of a private key."""
    lines = _grouped("".join(rng.choice(_ALNUM) for _ in range(400)), "\n", 64)
    return f"{lines}\n-----END RSA PRIVATE KEY-----"


_SECRET: Final[Mapping[str, Hide]] = {
    "of other services": _of_service,
    "end of a key": _cut_key,
    "quoted": lambda _rng, text: f"'{text}'",
    "variable": lambda _rng, text: f"export KEY={text}",
    "in an address": lambda _rng, text: f"https://x.example/?t={text}",
    "in code": lambda _rng, text: f"Client(api_key='{text}')",
    "in cells": lambda _rng, text: f"|{text}|",
    "end of a sentence": lambda _rng, text: f"It is {text}.",
    "small name": lambda _rng, text: f"-H 'x-key:{text}'",
}
_NAMED: Final[Mapping[str, Hide]] = {
    "quoted": lambda _rng, text: f"'{text}'",
    "in cells": lambda _rng, text: f"| {text} |",
    "no-break": lambda _rng, text: text.replace(" ", "\u00a0"),
    "in brackets": lambda _rng, text: f"({text})",
    "end of a sentence": lambda _rng, text: f"It is {text}.",
    "name behind": lambda _rng, text: (
        f"{_digits_of(text)} ({text.removeprefix('my ').split(' ')[0].rstrip(':')})"
        if text[0].isalpha()
        else text
    ),
}
_ASSIGNED: Final[Mapping[str, Hide]] = {
    "indented": lambda _rng, text: f"    {text}",
    "in code": lambda _rng, text: f"{{ {text} }}",
    "commented": lambda _rng, text: f"# {text}",
    "exported": lambda _rng, text: f"export {text}" if text.startswith("API") else text,
}
ATTACKS: Final[Mapping[str, Mapping[str, Hide]]] = {
    "card": _CARD, "iban": _IBAN, "email": _EMAIL, "phone": _PHONE, "ip": _IP, "secret": _SECRET,
    "national_id": _NAMED, "random_secret": _ASSIGNED,
}  # fmt: skip
_AROUND: Final = (
    "Please check {} before you answer.", "{}", "note: {};", "Summarise:\n\n{}\n\nThanks",
    "> {}", "\u041f\u0440\u0438\u0432\u0435\u0442, \u044d\u0442\u043e {} \u0434\u0430",
    "\u8fd9\u662f {} \u3002", "F\u00fcr {} \u00e4hnlich",
)  # fmt: skip


def attack(rng: random.Random, kind: str, name: str) -> str:
    """Return a text that contains content of a kind, hidden in the named way."""
    return rng.choice(_AROUND).replace("{}", ATTACKS[kind][name](rng, KINDS[kind](rng)))


def _rows(rng: random.Random, make: Callable[[], str]) -> str:
    return "\n".join(make() for _ in range(rng.randint(3, 30)))


def _hex(rng: random.Random, size: int) -> str:
    return "".join(rng.choice("0123456789abcdef") for _ in range(size))


_CLEAN: Final[Sequence[Callable[[random.Random], str]]] = (
    lambda rng: str([rng.random() for _ in range(40)]),
    lambda rng: _rows(rng, lambda: ",".join(str(rng.random() * 100) for _ in range(5))),
    lambda rng: _rows(rng, lambda: f"{rng.randrange(10**17, 2 * 10**17)} user joined"),
    lambda rng: _rows(rng, lambda: f"index {_hex(rng, 7)}..{_hex(rng, 7)} 100644"),
    lambda rng: _rows(rng, lambda: f"{_hex(rng, 64)}  build/{_hex(rng, 8)}.tar.gz"),
    lambda rng: _rows(rng, lambda: f"{uuid.UUID(int=rng.getrandbits(128))},{rng.randrange(10**6)}"),
    lambda rng: _rows(rng, lambda: ":".join(_hex(rng, 2) for _ in range(6))),
    lambda rng: _rows(rng, lambda: "| " + " | ".join(
        str(rng.randrange(1000, 10000)) for _ in range(6)) + " |"),
    lambda rng: _rows(rng, lambda: "\t".join(str(rng.randrange(10**6)) for _ in range(7))),
    lambda rng: _rows(rng, lambda: f"#{_hex(rng, 6)}; margin: {rng.randint(0, 40)}px 0.5em"),
    lambda rng: _rows(rng, lambda: f"{rng.uniform(-90, 90):.6f}, {rng.uniform(-180, 180):.6f}"),
    lambda rng: _rows(rng, lambda: (
        f"2026-11-{rng.randint(10, 28)} {rng.randint(10, 23)}:{rng.randint(10, 59)}:"
        f"{rng.randint(10, 59)},{rng.randrange(1000):03} [pool-{rng.randint(1, 9)}] "
        f"text={rng.randrange(10**6)} call {rng.randrange(10**5)} of {rng.randrange(10**9)}")),
    lambda rng: _rows(rng, lambda: f"{_hex(rng, 8)}: {_hex(rng, 4)} {_hex(rng, 4)} {_hex(rng, 4)}"),
    lambda rng: _rows(rng, lambda: f"ISBN 978-3-{rng.randrange(10, 99)}-{rng.randrange(10**6):06}-"
                                   f"{rng.randrange(10)}"),
    lambda rng: _rows(rng, lambda: f"v{rng.randint(0, 9)}.{rng.randint(0, 30)}.{rng.randint(0, 99)}"
                                   f"+{rng.randrange(10**8)}"),
    lambda rng: _rows(rng, lambda: f"{rng.randrange(10**9):,} of {rng.randrange(10**12):,} bytes"),
    lambda rng: _rows(rng, lambda: f"task-{''.join(rng.choices(string.ascii_lowercase, k=5))}-"
                                   f"{base64.b32encode(rng.randbytes(5)).decode().lower()}"),
    lambda rng: _rows(rng, lambda: f"{rng.randrange(1_700_000_000, 1_800_000_000)}."
                                   f"{rng.randrange(10**6):06} GET /v1/{rng.randrange(10**8)} 200"),
)  # fmt: skip


def clean_lookalikes(rng: random.Random, count: int) -> Iterator[str]:
    """Yield prompts full of numbers and words that contain no content of any kind."""
    for number in range(count):
        yield _CLEAN[number % len(_CLEAN)](rng)
