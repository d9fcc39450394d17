"""A telephone number is told by its form or by a word before it."""

import random

import pytest

from deploy.contentcases import phone
from gateway.content.telephone import is_telephone


@pytest.mark.parametrize(
    ("written", "before", "expected"),
    [
        ("+49 30 1234567", "", True), ("+999 30 1234567", "", False), ("(415) 555-2671", "", True),
        ("030 1234567", "phone: ", True), ("030 1234567", "order ", False),
        ("2026-11-28", "call ", False), ("0049 30 1234567", "", True), ("1234567", "tel ", True),
        ("+0000000000", "", False), ("(+49 30 1234567", "", True), ("(0049 30 1234567", "", True),
        ("01.70.84.11.46", "T\u00e9l. : ", True), ("01 70 84 11 46", "Appelez-moi au ", True),
        ("415-555-2671", "part no. ", False), ("415-555-2671", "SKU: ", False),
        ("415-555-2671", "phone of the model: ", True),
        ("36597838", "mob. 2005 10 731; PMID: ", False),
        ("2013.11.702", "doi:10.1016/j.cell.", False),
        ("030/1234567", "Telefonnummer ", True), ("030/1234567", "Festnetz: ", True),
    ],
)  # fmt: skip
def test_form_and_words_tell_a_number(written, before, expected) -> None:
    assert is_telephone(written, before) is expected


def test_all_that_people_write_is_found() -> None:
    rng = random.Random(1)
    for _ in range(300):
        before, _, written = phone(rng).rpartition("phone: ")
        assert is_telephone(written, "phone: " if before == "" and written[0] == "0" else before)
