"""Numbers of people are told by check digits and by words, in the form that each state gives."""

import random

import pytest

from deploy.contentcases import national_id
from gateway.content.national_ids import NATIONAL_IDS, STEMS, find_country

KNOWN = (
    ("86095742719", "DE", "tax id"), ("180126955222380", "FR", ""), ("RSSMRA85T10A562S", "IT", ""),
    ("11010519491231002X", "CN", ""), ("131052-308T", "FI", ""), ("7569217076985", "CH", ""),
    ("12345678Z", "ES", ""), ("X1234567L", "ES", ""), ("44051401359", "PL", "pesel"),
    ("52998224725", "BR", "cpf"), ("111222333", "NL", "bsn"), ("9434765919", "GB", "nhs"),
    ("123456782", "AU", "tfn"), ("10000000146", "TR", "kimlik"),
    ("8112189876", "SE", "personnummer"),
    ("85073003328", "BE", "national number"),
)  # fmt: skip


@pytest.mark.parametrize(("number", "country", "words"), KNOWN)
def test_a_number_is_its_state_s(number, country, words) -> None:
    assert find_country(number, number, f"the {words} is") == country


@pytest.mark.parametrize(
    ("number", "words"), [(number, words) for number, _, words in KNOWN if words]
)
def test_a_weak_number_is_none_without_a_word(number, words) -> None:
    assert find_country(number, number, "order") is None, words


def test_punctuation_is_enough_where_only_it_is_written_so() -> None:
    assert find_country("52998224725", "529.982.247-25", "") == "BR"
    assert find_country("123456789", "123-45-6789", "") == "US"


def test_each_word_that_names_a_number_has_one_of_the_stems() -> None:
    """Else a number would be passed over before its word is looked for."""
    rng = random.Random(3)
    for text in (*(words for _, _, words in KNOWN), *(national_id(rng) for _ in range(400))):
        for entry in NATIONAL_IDS:
            named = None if entry.words is None else entry.words.search(text)
            assert named is None or any(stem in named[0].lower() for stem in STEMS), text
    assert len({entry.country for entry in NATIONAL_IDS}) >= 18
