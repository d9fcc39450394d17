"""Numbers in words, in codes of letters and backwards are found, and masked where they stand."""

import pytest

from deploy.contentcases import KINDS
from gateway.content.text_scanner import TextScanner

CARD = "4111111111111111"
WORDS = {
    "en": "zero one two three four five six seven eight nine",
    "de": "null eins zwei drei vier f\u00fcnf sechs sieben acht neun",
    "fr": "z\u00e9ro un deux trois quatre cinq six sept huit neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "pt": "zero um dois tr\u00eas quatro cinco seis sete oito nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
}
OTHER = "5555341244441115"  # a card with other digits


def spoken(digits: str, language: str = "en", mark: str = " ") -> str:
    words = WORDS[language].split()
    return mark.join(words[int(digit)] for digit in digits)


def coded(form: str, mark: str, text: str = CARD) -> str:
    return mark.join(form.format(ord(letter)) for letter in text)


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize("written", [
    *(spoken(digits, language) for language in WORDS for digits in (CARD, OTHER)),
    *(spoken(OTHER, language, mark) for language in ("en", "de") for mark in (", ", "-")),
    spoken(OTHER, mark="\n"), spoken(OTHER, mark='", "'), spoken(OTHER).upper(),
    spoken(OTHER, mark=". "),
    "triple five five three four one two triple four four double one one five",
    "fifty-five fifty-five thirty-four twelve forty-four forty-four eleven fifteen",
    "five 5 five 5 3 four 1 two 4 four four 4 one 1 one five",
    "5555 three four one two 4444 one one one five",
])  # fmt: skip
def test_a_card_in_words_is_found_where_it_stands(scanner, written) -> None:
    text = f"the card is {written}; thanks"
    finds = scanner.scan([text]).finds
    assert [(find.kind, find.start, find.end) for find in finds] == [
        ("card", 12, 12 + len(written))
    ]


@pytest.mark.parametrize("written", [
    coded("{:x}", " "), coded("0x{:x}", ", "), coded("U+{:04X}", " "),
    coded("{}", " "), coded("{}", ", "), coded("chr({})", " + "), coded("chr({})", "."),
    f"String.fromCharCode({coded('{}', ',')})", coded("{:08b}", " "),
    f"0x{CARD.encode().hex()}", "3431 3131 3131 3131 3131 3131 3131 3131", coded("%u{:04x}", ""),
])  # fmt: skip
def test_codes_of_letters_are_read(scanner, written) -> None:
    assert [find.kind for find in scanner.scan([f"number {written} ok"]).finds] == ["card"]


@pytest.mark.parametrize("text", [
    f"reversed: {OTHER[::-1]}", f"{OTHER[::-1]} (written backwards)", f'"{OTHER[::-1]}"[::-1]',
    f"r\u00fcckw\u00e4rts gelesen {OTHER[::-1]}", f"\u00e0 l'envers : {OTHER[::-1]}",
    f"al rev\u00e9s: {OTHER[::-1]}", f"\u202e{OTHER[::-1]}\u202c",
])  # fmt: skip
def test_what_is_called_backwards_is_read_so(scanner, text) -> None:
    assert [find.kind for find in scanner.scan([f"card {text}"]).finds] == ["card"]


@pytest.mark.parametrize(("text", "kind"), [
    ("card 5555 34l2 4444 11l5", "card"), ("card 41l1 1ll1 1I11 1111", "card"),
    ("pay to DE893704OO44O532O13OOO", "iban"),
    (" ".join("ghp_16C7e42F292c6912E7710c838347Ae178B4a"), "secret"),
    (str([*"ghp_16C7e42F292c6912E7710c838347Ae178B4a"]), "secret"),
    (coded("{}", ", ", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"), "secret"),
    (coded("{}", ", ", "jane.doe@example.com"), "email"),
])  # fmt: skip
def test_letters_apart_and_letters_like_digits_are_read(scanner, text, kind) -> None:
    assert kind in [find.kind for find in scanner.scan([text]).finds]


@pytest.mark.parametrize("text", [
    "One two three four steps back, then five six seven to the left.",
    "Reversed, the order makes more sense: 1, 2 and 3 of 1234567890.",
    "eins zwei drei vier Eckstein, uno dos tres cuatro cinco",
    "labels = [48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 48, 49, 50, 51, 52, 53]",
    "0x34, 0x12, 0x7f, 0x33, 0x20, 0x41, 0x55, 0x61",
    "the 2nd l0op ran 10O times, O(1) and l1 norm",
])  # fmt: skip
def test_words_and_codes_that_are_no_number_change_nothing(scanner, text) -> None:
    assert scanner.scan([text]) == ([], 0)
