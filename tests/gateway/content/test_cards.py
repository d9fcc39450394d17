"""Cards in the groups that people and tables give them, and numbers that are none."""

from cProfile import Profile

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


@pytest.mark.parametrize(("text", "expected"), [
    ("EAN 4031662773069", []), ("card 4031662773069", ["4031662773069"]),
    ("8721\t121\t4442\t8115\t7521\n9264\t572\t6548\t4080\t2132", []),
    ("5555\t3412\t4444\t1115\t12/27\t123", ["5555\t3412\t4444\t1115"]),
    ("no6011251514287625exp1227", ["6011251514287625"]), ("0f6011251514287625ab", []),
])  # fmt: skip
def test_goods_and_rows_of_tables_are_no_cards(text, expected) -> None:
    assert found(text) == expected


def test_a_fraction_is_no_group() -> None:
    assert list(cards_in("540689 7566 0.544 72", 0)) == []


def test_each_group_of_a_table_is_tried_once() -> None:
    line = " ".join(str(number * 7 % 10) for number in range(28))
    calls = []
    for rows in (100, 200):
        text = "\n".join([line] * rows)
        profile = Profile()
        profile.enable()
        list(find_cards(text, range(20, len(text), 2)))
        profile.disable()
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 2.2 * calls[0]
    assert calls[1] < 50 * 200 * 28
