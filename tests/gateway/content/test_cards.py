"""Cards in the groups that people and tables give them, and numbers that are none."""

import pytest

from gateway.content.cards import cards_in, find_cards, find_runs

CARD = "4111111111111111"


def found(text: str) -> list[str]:
    places = [at for at in range(1, len(text) + 1) if text[at - 1].isdigit()]
    return [text[card.start : card.end] for card in find_cards(text, places)]


@pytest.mark.parametrize(
    "written",
    [
        CARD, "4111|1111|1111|1111", "4111 | 1111 | 1111 | 1111", "4111\n1111\n1111\n1111",
        "4111 1111\n1111 1111", "41-11-11-11-11-11-11-11", "41111111 11111111",
        "4111 11111111 1111", "3782-822463-10005", "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    ],
)  # fmt: skip
def test_cards_in_groups_of_one_size(written) -> None:
    assert found(f"a {written} b") == [written]
    assert found(f"({written})") == [written]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"x{CARD}", [CARD]), (f"card{CARD}", [CARD]), (f"{CARD}x", [CARD]), (f"a{CARD}", []),
        (f"ab12{CARD}", []), (f"0.{CARD}", []), ("65.77767730479924", []),
        (f"{CARD}\n5500000000000004", [CARD, "5500000000000004"]),
        ("4111 1111 1111 1111 1111 1111", []), ("4111 1111 1111 1112", []),
        ("4111 1111 1111 1111 12/27", ["4111 1111 1111 1111"]),
    ],
)  # fmt: skip
def test_what_stands_beside_tells_cards_from_other_numbers(text, expected) -> None:
    assert found(text) == expected


def test_uneven_groups_are_a_card_where_nothing_else_stands_in_the_line() -> None:
    for text, expected in (
        ("x 41 111111-11111111 y", 1), ("x 411 11 1111 1111111 y", 1),
        ("2026-11-28 411 11 1111 1111111 y", 0), ("12 411 11 1111 1111111 y", 0),
    ):  # fmt: skip
        ends = [at for at in range(1, len(text) + 1) if text[at - 1].isdigit()]
        assert len(list(find_runs(text, ends[-1:]))) == expected, text


def test_a_run_is_one_number_or_has_one_at_an_end() -> None:
    assert [card.digits for card in cards_in("4111 1111 1111 1111", 0)] == [CARD]
    assert list(cards_in("1.5 2.25 4111 33 1111 1111", 0)) == []
