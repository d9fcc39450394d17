"""What filters offer is what the cells say occurs together, by brute force over every choice."""

from itertools import product

from dashboard.facets import FACETS, is_present, offered_values
from ledger.queries.reads import AttemptCell

ROWS = (  # team, model, target, spill reason
    ("search", "chat", "pool:a/0", None),
    ("search", "chat", "openai/x", "ttft"),
    ("search", "code", "openai/x", "tpot"),
    ("finance", "chat", "openai/x", "ttft"),
    ("finance", "claude", "anthropic/y", None),
)
CELLS = tuple(
    AttemptCell(
        0, team, model, "api", target, None, spill, "finished", None, False,
        *(1,) * 5, cost_pusd=1, unpriced=0,
    )
    for team, model, target, spill in ROWS
)  # fmt: skip
VALUES = {name: sorted({row[n] for row in ROWS} - {None}) for n, name in enumerate(FACETS)}
CHOICES = [
    {name: value for name, value in zip(FACETS, picked, strict=True) if value}
    for picked in product(*([None, *values] for values in VALUES.values()))
]


def matching(chosen: dict[str, str]) -> list[dict[str, str | None]]:
    rows = [dict(zip(FACETS, row, strict=True)) for row in ROWS]
    return [row for row in rows if chosen.items() <= row.items()]


def test_a_value_is_offered_where_something_has_it_and_all_others_chosen() -> None:
    for chosen in CHOICES:
        for name, values in offered_values(CELLS, chosen).items():
            others = {key: value for key, value in chosen.items() if key != name}
            fitting = {value for value in VALUES[name] if matching(others | {name: value})}
            mine = {chosen[name]} if name in chosen else set()
            assert values == sorted(fitting | mine), chosen


def test_it_occurs_where_a_row_has_all_of_it() -> None:
    assert [is_present(CELLS, chosen) for chosen in CHOICES] == [
        bool(matching(item)) for item in CHOICES
    ]
    assert not all(map(matching, CHOICES)), "the control"


def test_what_is_chosen_stays_on_offer_when_nothing_has_it_any_more() -> None:
    assert offered_values((), {"team": "gone"}) == {
        "team": ["gone"], "model": [], "target": [], "spill reason": [],
    }  # fmt: skip
