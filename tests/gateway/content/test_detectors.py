"""What makes sure of a find: each detector on its own."""

import pytest

from gateway.config.content_kinds import CONTENT_KINDS
from gateway.content.detectors import (
    DETECTORS,
    find_addresses,
    find_cut_keys,
    find_ibans,
    find_secrets,
)
from gateway.content.numbers import find_numbers


def found(find, text: str) -> list[str]:
    return [text[span.start : span.end] for span in find(text, list(range(1, len(text) + 1)))]


def numbers(text: str) -> set[tuple[str, str]]:
    places = [place for place in range(1, len(text) + 1) if text[place - 1].isdigit()]
    return {(span.kind, span.value) for span in find_numbers(text, places)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4111 1111 1111 1111 12/27", {("card", "4111111111111111")}),
        ("4111111111111112", set()), ("a4111111111111111", set()), ("order 1234 5678", set()),
        ("4-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1", {("card", "4111111111111111")}),
        ("1.5 2.25 4111 33 1111 1111", set()),
    ],
)  # fmt: skip
def test_cards_among_digits(text, expected) -> None:
    assert numbers(text) == expected


def test_an_account_number_has_its_country_s_length() -> None:
    assert "DE89 3704 0044 0532 0130 00" in found(
        find_ibans, "IBAN DE89 3704 0044 0532 0130 00 now"
    )
    assert found(find_ibans, "DE89370400440532013001") == []


@pytest.mark.parametrize("mark", ["/", "_", " | ", "*", "\r\n", " ", "-"])
def test_other_marks_may_stand_in_an_account_number(mark) -> None:
    number = "DE89370400440532013000"
    written = mark.join(number[at : at + 4] for at in range(0, len(number), 4))
    assert written in found(find_ibans, f"to {written} now")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10.1.2.3", ["10.1.2.3"]), ("version 1.2.3.4", []), ("127.0.0.1", []), ("1.2.3.4.5", []),
     ("10.0.0.0/8", []), ("2001:db8::1", ["2001:db8::1"]), ("12:30:45", []), ("std::a", [])],
)  # fmt: skip
def test_addresses_of_hosts(text, expected) -> None:
    assert sorted(set(found(find_addresses, text))) == expected


def test_a_key_whose_characters_stand_apart_is_found() -> None:
    text = "key ghp_ " + " ".join("a1B2" * 9) + " ok"
    assert [span.kind for span in find_secrets(text, [text.index("ghp_") + 4])] == ["secret"]


def test_what_is_left_of_a_key_is_found_by_its_last_line() -> None:
    key = "\n".join(["aB3+" * 16] * 3) + "\n-----END RSA PRIVATE KEY-----"
    for text, left in (
        (f"it says {key} ok", [key]),
        ("the line -----END RSA PRIVATE KEY----- ends it", []),
    ):
        places = [text.index("KEY") + 3]
        assert [text[span.start : span.end] for span in find_cut_keys(text, places)] == left


def test_kinds_of_detectors_are_those_of_policies() -> None:
    kinds = frozenset().union(*(entry.kinds for entry in DETECTORS))
    assert kinds == CONTENT_KINDS.keys() - {"unknown"}


KEY = "AKIAJWXVPJAVYPG6AOU2"


@pytest.mark.parametrize("written", [
    "AKIAJW-XVPJAV-YPG6AO-U2", "AKIAJW/XVPJAV/YPG6AO/U2", "AKIAJW*XVPJAV*YPG6AO*U2",
    "AKIAJWXVPJAV and continues YPG6AOU2", "a.push('AKIAJWXVPJ')\na.push('AVYPG6AOU2')",
    "1. AKIAJWXVPJ\n2. AVYPG6AOU2", "// AKIAJWXVPJ\n// AVYPG6AOU2", "AKIAJWXVPJ...\n...AVYPG6AOU2",
])  # fmt: skip
def test_a_key_in_pieces_is_found(written) -> None:
    places = range(1, len(written) + 1)
    assert [span.value for span in find_secrets(written, places)] == [KEY]


@pytest.mark.parametrize(("text", "expected"), [
    ("DE8-937-040-044-053-201-300-0", ["DE8-937-040-044-053-201-300-0"]),
    ("1234abcd-de89-3704-0044-053201300012", []), ("DE89-3704-0044-0532-0130-00", 1),
])  # fmt: skip
def test_an_account_between_dashes_is_no_part_of_a_uuid(text, expected) -> None:
    assert found(find_ibans, text) == ([text] if expected == 1 else expected)
