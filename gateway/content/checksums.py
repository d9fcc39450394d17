"""Check digits: of cards, bank accounts and numbers that states give to people."""

from collections.abc import Sequence
from typing import Final

_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")
_ZERO: Final = ord("0")
_IBAN_BASE: Final = 97
IBAN_LENGTHS: Final = {
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "TL"), 23),
    "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16,
    "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "DE": 22, "DK": 18,
    "DO": 28, "EE": 20, "EG": 29, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GL": 18,
    "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IS": 26, "IT": 27, "JO": 30, "KW": 30,
    "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27,
    "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PL": 28, "PS": 29,
    "PT": 25, "QA": 29, "RS": 22, "SC": 31, "SI": 19, "SM": 27, "ST": 25, "SV": 28, "TR": 26,
    "UA": 29, "VA": 22, "XK": 20, "DJ": 27, "RU": 33, "SD": 18, "SO": 23, "BI": 27,
    "MN": 20, "NI": 28,
    "OM": 23, "FK": 18, "YE": 30, "HN": 28,
}  # fmt: skip
_VERHOEFF_PRODUCT: Final = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_TURN: Final = (
    "0123456789", "1576283094", "5803796142", "8916043527",
    "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def is_luhn(digits: str) -> bool:
    """Return whether the last digit checks the others as on cards."""
    turned = digits[::-1].encode()
    total = sum(turned[::2]) + sum(turned[1::2].translate(_DOUBLED))
    return (total - _ZERO * len(turned)) % 10 == 0


def is_ean(digits: str) -> bool:
    """Return whether the last digit checks the others as on goods."""
    figures = digits[::-1].encode()
    total = sum(figures[::2]) + 3 * sum(figures[1::2])
    return (total - _ZERO * (len(figures[::2]) + 3 * len(figures[1::2]))) % 10 == 0


def is_iban(text: str) -> bool:
    """Return whether letters and digits without blanks leave 1 of 97, the first four moved."""
    turned = text[4:] + text[:4]
    return int("".join(str(int(letter, 36)) for letter in turned)) % _IBAN_BASE == 1


def weighted(digits: str, weights: Sequence[int]) -> int:
    """Return the sum of the digits, each times its weight."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def is_mod_11_10(digits: str) -> bool:
    """Return whether the last digit checks the others by ISO 7064, as in German tax numbers."""
    product = 10
    for digit in digits[:-1]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(digits[-1])


def is_mod_11_2(text: str) -> bool:
    """Return whether the last place, a digit or X, checks the others by ISO 7064."""
    remainder = 0
    for digit in text[:-1]:
        remainder = (remainder + int(digit)) * 2 % 11
    return "0123456789X"[(12 - remainder) % 11] == text[-1].upper()


def is_verhoeff(digits: str) -> bool:
    """Return whether the digits end with their check digit after Verhoeff."""
    check = 0
    for place, digit in enumerate(reversed(digits)):
        turned = int(_VERHOEFF_TURN[place % 8][int(digit)])
        check = int(_VERHOEFF_PRODUCT[check][turned])
    return check == 0
