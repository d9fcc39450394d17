"""Generators of content for detectors, of other ways to write it, and of clean prompts.

The generators follow the documents of the issuers; the evasions follow what people do to text.
Neither was written from a detector's code, so a change to a detector is tested independently.
"""

import base64
import html
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import quote

Make = Callable[[random.Random], str]

# Prefixes of card networks, with the number of digits.
_CARDS: Final = (
    ("4", 16), ("4", 13), ("51", 16), ("55", 16), ("2221", 16), ("2720", 16), ("34", 15),
    ("37", 15),
    ("6011", 16), ("65", 16), ("3528", 16), ("3589", 16), ("36", 14), ("305", 14), ("62", 16),
)  # fmt: skip
_IBANS: Final = {
    "DE": "n18", "FR": "n10c11n2", "GB": "a4n14", "NL": "a4n10", "ES": "n20", "IT": "a1n10c12",
    "AT": "n16", "CH": "n5c12", "BE": "n12", "PL": "n24", "SE": "n20", "NO": "n11", "PT": "n21",
    "IE": "a4n14", "DK": "n14", "FI": "n14", "CZ": "n20", "LU": "n3c13", "TR": "n6c16",
}  # fmt: skip
_NAMES: Final = (
    "jane doe", "max mustermann", "li wei", "anna kowalska", "omar haddad", "sofia rossi",
    "juan perez", "marie curie", "john smith", "ines silva",
)  # fmt: skip
_DOMAINS: Final = (
    "example.com", "mail.example.org", "corp.net", "uni-bonn.de", "post.co.uk", "startup.io",
    "ministere.gouv.fr", "shop.com.br", "gmail.com", "acme.jp",
)  # fmt: skip
_ALNUM: Final = string.ascii_letters + string.digits


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice(string.digits) for _ in range(count))


def _any(rng: random.Random, makes: Sequence[Callable[[], str]]) -> str:
    return rng.choice(makes)()


def _word(rng: random.Random, count: int, letters: str = _ALNUM) -> str:
    return "".join(rng.choice(letters) for _ in range(count))


def card(rng: random.Random) -> str:
    """Return a valid card number in one of the usual groupings."""
    prefix, size = rng.choice(_CARDS)
    body = prefix + _digits(rng, size - len(prefix) - 1)
    total = 0
    for place, digit in enumerate(reversed(body)):
        number = int(digit) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    number_text = body + str(-total % 10)
    mark = rng.choice(["", "", " ", "-"])
    if size == 15 and mark:
        return mark.join((number_text[:4], number_text[4:10], number_text[10:]))
    return mark.join(number_text[at : at + 4] for at in range(0, size, 4)) if mark else number_text


def iban(rng: random.Random) -> str:
    """Return a valid IBAN, in groups of four characters or without groups."""
    country, form = rng.choice(sorted(_IBANS.items()))
    body, at = "", 0
    while at < len(form):
        kind, at = form[at], at + 1
        size = ""
        while at < len(form) and form[at].isdigit():
            size, at = size + form[at], at + 1
        letters = {
            "n": string.digits, "a": string.ascii_uppercase,
            "c": string.digits + string.ascii_uppercase,
        }[kind]  # fmt: skip
        body += _word(rng, int(size), letters)
    turned = "".join(str(int(letter, 36)) for letter in f"{body}{country}00")
    whole = f"{country}{98 - int(turned) % 97:02}{body}"
    if rng.random() < 0.5:
        return whole
    return " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))


def _german_tax(rng: random.Random) -> str:
    body = str(rng.randint(1, 9)) + _digits(rng, 9)
    product = 10
    for digit in body:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return f"my Steuer-ID is {body}{(11 - product) % 10}"


def _dutch(rng: random.Random) -> str:
    while True:
        body = str(rng.randint(1, 9)) + _digits(rng, 7)
        check = sum(int(digit) * (9 - at) for at, digit in enumerate(body)) % 11
        if check < 10:
            return f"BSN: {body}{check}"


def _spanish(rng: random.Random) -> str:
    number = _digits(rng, 8)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[int(number) % 23]}"


def _french(rng: random.Random) -> str:
    body = f"{rng.choice('12')}{rng.randint(40, 99)}{rng.randint(1, 12):02}{rng.randint(10, 95):02}"
    body += _digits(rng, 6)
    key = 97 - int(body) % 97
    whole = f"{body}{key:02}"
    return (
        whole
        if rng.random() < 0.5
        else (" ".join(whole[start:end] for start, end in pairwise((0, 1, 3, 5, 7, 10, 13, 15))))
    )


def _polish(rng: random.Random) -> str:
    body = f"{rng.randint(50, 99)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}" + _digits(rng, 4)
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return f"PESEL {body}{-total % 10}"


def _brazilian(rng: random.Random) -> str:
    body = _digits(rng, 9)
    for size in (10, 11):
        total = sum(int(digit) * (size - at) for at, digit in enumerate(body))
        body += str(0 if total * 10 % 11 == 10 else total * 10 % 11)
    return f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"


def _indian(rng: random.Random) -> str:
    from gateway.content.checksums import is_verhoeff  # noqa: PLC0415  (only the checksum)

    body = str(rng.randint(2, 9)) + _digits(rng, 10)
    whole = next(body + digit for digit in string.digits if is_verhoeff(body + digit))
    return f"Aadhaar {whole[:4]} {whole[4:8]} {whole[8:]}"


def _chinese(rng: random.Random) -> str:
    body = f"110101{rng.randint(1950, 2005)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}"
    body += _digits(rng, 3)
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return body + "10X98765432"[total % 11]


def _finnish(rng: random.Random) -> str:
    date = f"{rng.randint(1, 28):02}{rng.randint(1, 12):02}{rng.randint(0, 99):02}"
    number = f"{rng.randint(2, 899):03}"
    check = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(date + number) % 31]
    return f"{date}{rng.choice('-A')}{number}{check}"


def _canadian(rng: random.Random) -> str:
    body = str(rng.randint(1, 7)) + _digits(rng, 7)
    total = 0
    for place, digit in enumerate(reversed(body)):
        number = int(digit) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    whole = body + str(-total % 10)
    return f"SIN {whole[:3]} {whole[3:6]} {whole[6:]}"


_NATIONAL: Final = (
    _german_tax, _dutch, _spanish, _french, _polish, _brazilian, _indian, _chinese, _finnish,
    _canadian,
)  # fmt: skip


def national_id(rng: random.Random) -> str:
    """Return a national identity number of one of ten countries, as people write it."""
    return rng.choice(_NATIONAL)(rng)


def email(rng: random.Random) -> str:
    first, last = rng.choice(_NAMES).split()
    local = rng.choice(
        [
            f"{first}.{last}",
            f"{first}_{last}",
            f"{first[0]}{last}{rng.randint(1, 99)}",
            f"{first}+{last}",
            last,
        ]
    )
    return f"{local}@{rng.choice(_DOMAINS)}"


def phone(rng: random.Random) -> str:
    return _any(rng, [
        lambda: f"+49 {rng.randint(30, 999)} {_digits(rng, 7)}",
        lambda: f"+1 {rng.randint(201, 989)}-{rng.randint(200, 999)}-{_digits(rng, 4)}",
        lambda: f"({rng.randint(201, 989)}) {rng.randint(200, 999)}-{_digits(rng, 4)}",
        lambda: f"+44 20 {_digits(rng, 4)} {_digits(rng, 4)}",
        lambda: f"+33{rng.randint(1, 7)}{_digits(rng, 8)}",
        lambda: f"phone: 0{rng.randint(30, 99)} {_digits(rng, 7)}",
        lambda: f"+91-{rng.randint(70000, 99999)}-{_digits(rng, 5)}",
    ])  # fmt: skip


def ip(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return "2001:db8:" + ":".join(f"{rng.randrange(65536):x}" for _ in range(6))
    first = rng.choice([10, 172, 192, 203, 8])
    return f"{first}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randint(1, 254)}"


_UPPER: Final = string.ascii_uppercase + string.digits
_HEX: Final = "0123456789abcdef"


def secret(rng: random.Random) -> str:
    def segment(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    body = "\n".join(_word(rng, 64, _ALNUM + "+/") for _ in range(6))
    return _any(rng, [
        lambda: "AKIA" + _word(rng, 16, string.ascii_uppercase + "234567"),
        lambda: rng.choice(["ghp_", "gho_", "ghs_"]) + _word(rng, 36),
        lambda: "github_pat_" + _word(rng, 22) + "_" + _word(rng, 59),
        lambda: "sk-proj-" + _word(rng, 48),
        lambda: "sk-" + _word(rng, 48),
        lambda: "sk-ant-api03-" + _word(rng, 93, _ALNUM + "-_"),
        lambda: f"xoxb-{_digits(rng, 12)}-{_digits(rng, 12)}-{_word(rng, 24)}",
        lambda: f"{segment({'alg': 'HS256', 'typ': 'JWT'})}.{segment({'sub': _digits(rng, 9)})}."
                f"{_word(rng, 43, _ALNUM + '-_')}",
        lambda: f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----",
        lambda: "AIza" + _word(rng, 35, _ALNUM + "-_"),
        lambda: "sk_live_" + _word(rng, 24),
    ])  # fmt: skip


def random_secret(rng: random.Random) -> str:
    return _any(rng, [
        lambda: f"password = '{_word(rng, 14, _ALNUM + '!#%')}7x'",
        lambda: f"API_KEY={_word(rng, 31)}7",
        lambda: f'client_secret: "{_word(rng, 39)}3"',
        lambda: f"Authorization: Bearer {_word(rng, 40)}",
        lambda: f"postgres://app:{_word(rng, 16)}4@db.internal:5432/app",
        lambda: f'"secret_token": "{_word(rng, 28)}9"',
        lambda: f"aws key {_word(rng, 40, _ALNUM + '/+')}",
    ])  # fmt: skip


KINDS: Final[Mapping[str, Make]] = {
    "card": card, "iban": iban, "national_id": national_id, "email": email, "phone": phone,
    "ip": ip, "secret": secret, "random_secret": random_secret,
}  # fmt: skip
CHECKSUMMED: Final = ("card", "iban", "national_id")

_FULL_WIDTH: Final = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_ALIKE: Final = str.maketrans(
    "aceiopxyABCEHKMOPTX",
    "\u0430\u0441\u0435\u0456\u043e\u0440\u0445\u0443"
    "\u0410\u0412\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425",
)
_ARABIC: Final = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _between(text: str, mark: str, step: int) -> str:
    return mark.join(text[at : at + step] for at in range(0, len(text), step))


EVASIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": lambda text: text,
    "zero width": lambda text: _between(text, "\u200b", 3),
    "soft hyphen": lambda text: _between(text, "\u00ad", 4),
    "word joiner": lambda text: _between(text, "\u2060", 2),
    "full width": lambda text: text.translate(_FULL_WIDTH),
    "look-alike letters": lambda text: text.translate(_ALIKE),
    "escaped": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "escaped twice": lambda text: json.dumps(json.dumps({"v": _between(text, "\u200b", 5)}))[1:-1],
    "hexadecimal escapes": lambda text: "".join(f"\\x{ord(letter):02x}" for letter in text),
    "octal escapes": lambda text: "".join(f"\\{ord(letter):03o}" for letter in text),
    "long escapes": lambda text: "".join(f"\\U{ord(letter):08x}" for letter in text),
    "entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "open entities": lambda text: "".join(f"&#{ord(letter)}" for letter in text),
    "as in mail": lambda text: "".join(f"={byte:02X}" for byte in text.encode()),
    "two bytes": lambda text: _between(text, "\0", 1),
    "base32": lambda text: base64.b32encode(f"note {text} end".encode()).decode(),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "marked up": html.escape,
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "address": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(f"value: {text}".encode()).decode(),
    "base64 of addresses": lambda text: base64.urlsafe_b64encode(
        f"note {text} end".encode()
    ).decode(),
    "hexadecimal": lambda text: f"note {text}".encode().hex(),
}  # fmt: skip
# Evasions for numbers only: they would change the meaning of other text.
NUMBER_EVASIONS: Final[Mapping[str, Callable[[str], str]]] = {
    "spaced": lambda text: " ".join("".join(filter(str.isdigit, text))),
    "dashed": lambda text: _between("".join(filter(str.isdigit, text)), "-", 4),
    "other digits": lambda text: text.translate(_ARABIC),
    "dotted": lambda text: _between("".join(filter(str.isdigit, text)), ".", 4),
    "no-break spaces": lambda text: _between("".join(filter(str.isdigit, text)), "\u00a0", 4),
}  # fmt: skip
SENTENCES: Final = (
    "Please check {} before you answer.", "{}",
    "We got {} from the customer yesterday", "note: {};",
    "Summarise this.\n\n{}\n\nThanks", "value={} (from the form)", "| name | {} | ok |",
)  # fmt: skip


def written(rng: random.Random, kind: str, evasion: str) -> str:
    """Return a sentence that contains content of a kind, written with the named evasion."""
    text = KINDS[kind](rng)
    hide = EVASIONS.get(evasion) or NUMBER_EVASIONS[evasion]
    return rng.choice(SENTENCES).replace("{}", hide(text))


def split_parts(rng: random.Random, kind: str) -> list[str]:
    """Return a text with content of a kind, split into two to five parts of one message."""
    text = f"it is {KINDS[kind](rng)} ok"
    cuts = sorted(rng.sample(range(7, len(text) - 4), k=min(rng.randint(1, 4), len(text) - 12)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _log_lines(rng: random.Random) -> str:
    return "\n".join(
        f"2026-11-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:"
        f"{rng.randint(0, 59):02}.{rng.randrange(10**6):06}Z "
        f"{rng.choice(['INFO', 'WARN', 'ERROR'])} "
        f"req={uuid.UUID(int=rng.getrandbits(128))} path=/v1/items/{rng.randrange(10**7)} "
        f"status={rng.choice([200, 404, 500])} took={rng.random() * 100:.3f}ms "
        f"bytes={rng.randrange(10**6)}"
        for _ in range(rng.randint(3, 20))
    )


def _orders(rng: random.Random) -> str:
    return "\n".join(
        f"order {rng.choice(['SO', 'PO', 'INV'])}-{rng.randrange(10**8):08} total "
        f"{rng.randrange(10**5) / 100:.2f} tracking "
        f"{_word(rng, 4, _UPPER)}{rng.randrange(10**10):010}"
        for _ in range(rng.randint(2, 9))
    )


def _identifiers(rng: random.Random) -> str:
    return "\n".join(_any(rng, [
        lambda: f"id {uuid.UUID(int=rng.getrandbits(128))}",
        lambda: f"commit {_word(rng, 40, _HEX)}",
        lambda: f"sha256:{_word(rng, 64, _HEX)}",
        lambda: f"trace {_word(rng, 32, _HEX)} span {_word(rng, 16, _HEX)}",
        lambda: f"build {rng.randrange(10**6)} of 2026-{rng.randint(1, 12):02}",
        lambda: f"ts {rng.randrange(1_700_000_000_000, 1_800_000_000_000)}",
        lambda: f'"integrity": "sha512-{base64.b64encode(rng.randbytes(64)).decode()}"',
        lambda: f"version {'.'.join(str(rng.randint(0, 30)) for _ in range(4))}",
        lambda: f"row {rng.randrange(10**9)} of {rng.randrange(10**10)}",
    ])
        for _ in range(rng.randint(3, 12)))  # fmt: skip


def _table(rng: random.Random) -> str:
    return "\n".join(
        "  ".join(
            f"{rng.random() * 10 ** rng.randint(0, 4):.{rng.randint(0, 4)}f}" for _ in range(6)
        )
        for _ in range(rng.randint(3, 12))
    )


def clean_prompts(rng: random.Random, sources: Sequence[str], count: int) -> Iterator[str]:
    """Yield prompts without content: pieces of sources, logs, orders, identifiers, tables."""
    for number in range(count):
        kind = number % 5
        if kind == 0:
            source = rng.choice(sources)
            at = rng.randrange(max(1, len(source) - 4000))
            yield source[at : at + rng.randint(400, 4000)]
        else:
            yield (_log_lines, _orders, _identifiers, _table)[kind - 1](rng)
