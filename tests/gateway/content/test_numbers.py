"""Numbers around places: in forms that tell themselves, beside words, in lines of their own."""

import pytest

from gateway.content.numbers import find_named, find_numbers, find_shaped, find_written_ids


def found(find, text: str, *places: int) -> list[tuple[str, str]]:
    return [(span.kind, span.value) for span in find(text, places or (len(text),))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it is 123-45-6789", [("national_id", "123456789")]),
        ("call 415-555-2671", [("phone", "4155552671")]), ("row 415.55 2671", []),
        ("a123-45-6789", []), ("x 2026-11-28", []),
    ],
)  # fmt: skip
def test_forms_tell_what_a_number_is(text, expected) -> None:
    assert found(find_shaped, text) == expected


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("BSN: 123456782", "BSN", ["123456782"]), ("123456782 (BSN)", "BSN", ["123456782"]),
        ("BSN: 123456783", "BSN", []), ("uid of nobody", "uid", []),
    ],
)  # fmt: skip
def test_words_name_numbers_before_and_behind(text, word, expected) -> None:
    spans = find_named(text, [text.index(word) + len(word)])
    assert [span.value for span in spans] == expected


def test_a_number_at_a_place_is_read_in_its_line_and_its_word() -> None:
    assert found(find_numbers, "12 34\n+49 30 1234567") == [("phone", "49301234567")]
    assert found(find_numbers, "7 8 9 10 415-555-2671") == [("phone", "4155552671")]


def test_a_number_with_letters_is_told_by_its_letter() -> None:
    assert found(find_written_ids, "12345678Z") == [("national_id", "12345678Z")]
    assert found(find_written_ids, "12345678A") == []
