"""Numbers in words of a table of languages, whatever marks stand between, and in numerals."""

import pytest

from deploy.contentcases import KINDS
from gateway.content.number_words import NUMBER_WORD_SIGNS, read_numerals, read_words
from gateway.content.text_scanner import TextScanner

CARD = "5555341244441115"
WORDS = {
    "en": "zero one two three four five six seven eight nine",
    "de": "null eins zwei drei vier f\u00fcnf sechs sieben acht neun",
    "fr": "z\u00e9ro un deux trois quatre cinq six sept huit neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "pt": "zero um dois tr\u00eas quatro cinco seis sete oito nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
    "pl": "zero jeden dwa trzy cztery piec szesc siedem osiem dziewiec",
    "sv": "noll ett tv\u00e5 tre fyra fem sex sju \u00e5tta nio",
    "cs": "nula jedna dva t\u0159i \u010dty\u0159i p\u011bt \u0161est sedm osm dev\u011bt",
    "tr": "s\u0131f\u0131r bir iki \u00fc\u00e7 d\u00f6rt be\u015f alt\u0131 yedi sekiz dokuz",
    "id": "nol satu dua tiga empat lima enam tujuh delapan sembilan",
}


def spoken(language: str, mark: str, digits: str = CARD) -> str:
    words = WORDS[language].split()
    return mark.join(words[int(digit)] for digit in digits)


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize("written", [
    *(spoken(language, " ") for language in WORDS),
    *(spoken(language, ", ") for language in ("fr", "es", "pt", "nl", "pl")),
    *(spoken("en", mark) for mark in ("\n- ", "", " / ", '", "', "** **")),
    spoken("de", ""), spoken("es", "-"),
    "".join(word.title() for word in spoken("en", " ").split()),
    "five five five five then three four one two then four four four four then one one one five",
    "double five double five three four one two double four double four triple one five",
])  # fmt: skip
def test_a_card_in_words_is_found_where_it_stands(scanner, written) -> None:
    finds = scanner.scan([f"the card is {written}; thanks"]).finds
    assert [(find.kind, find.value) for find in finds] == [("card", CARD)]
    assert finds[0].start == 12
    assert finds[0].end == 12 + len(written)


@pytest.mark.parametrize("written", [
    CARD.translate(str.maketrans("012345", "\u3007\u4e00\u4e8c\u4e09\u56db\u4e94")),
    "5555 3412 4444 1115".translate(
        str.maketrans("012345", "\u3007\u4e00\u4e8c\u4e09\u56db\u4e94")
    ),
    CARD.translate(str.maketrans("012345", "\u96f6\u58f9\u8d30\u53c1\u8086\u4f0d")),
    CARD.translate(str.maketrans("012345", "\uacf5\uc77c\uc774\uc0bc\uc0ac\uc624")),
])  # fmt: skip
def test_a_card_in_numerals_is_found(scanner, written) -> None:
    finds = scanner.scan([f"\u6211\u7684\u53f7\u7801\u662f{written}\u3002"]).finds
    assert [(find.kind, find.value) for find in finds] == [("card", CARD)]


def test_words_joined_with_letters_are_an_account(scanner) -> None:
    said = "DEeightninethreesevenzerofourzerozerofourfourzerofivethreetwozeroonethreezerozerozero"
    finds = scanner.scan([f"IBAN {said}"]).finds
    assert [(find.kind, find.value) for find in finds] == [("iban", "DE89370400440532013000")]


@pytest.mark.parametrize("text", [
    "go to the fire, ten hats and one or two of them are on us",
    "one, two, three, four, and lift off", "sex and fire en route to Oslo", "san, ni, ichi",
])  # fmt: skip
def test_figures_of_speech_say_no_number(text) -> None:
    assert list(read_words(text)) == []


def test_a_year_is_no_number_of_many_digits() -> None:
    assert list(read_numerals("\u4e00\u4e5d\u516b\u56db\u5e74\u4e09\u6708")) == []


def test_signs_are_latin_one() -> None:
    assert all(sign.encode("latin-1") for sign in NUMBER_WORD_SIGNS)
