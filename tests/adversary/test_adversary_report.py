"""The width of bounds: which calls count, and what each ratio is of."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from adversary_answers import answered
from adversary_report import BoundReport, bounds_table
from adversary_usage import openai
from adversary_world import CallResult

from ledger.journals.records import TokenCounts

MADE = TokenCounts(input=10, output=20)
BODY = {"model": "up/m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 20}


def played(body=BODY, made=MADE, **changes) -> CallResult:
    call = replace(answered(body, MADE, openai(MADE)), made=made, **changes)
    opened, settled = SimpleNamespace(bound_pusd=150), SimpleNamespace(cost_pusd=100)
    most = TokenCounts(input=30, output=20)
    return CallResult(call, 0, opened=opened, settled=settled, most=most)


def report(*results: CallResult) -> dict:
    found = BoundReport()
    for result in results:
        found.add("text", result)
    return found.as_json()


def test_ratios_of_money_and_tokens() -> None:
    figures = {"count": 1, "median": 1.0, "max": 1.0, "min": 1.0}
    assert report(played()) == {
        "text": {
            "whole": {**figures, "median": 1.5, "max": 1.5, "min": 1.5},
            "input": {**figures, "median": 3.0, "max": 3.0, "min": 3.0},
            "output": figures,
        }
    }


def test_output_counts_where_the_limit_is_used_up() -> None:
    assert report(played(made=TokenCounts(input=10, output=19)))["text"]["output"] is None


@pytest.mark.parametrize(
    "result",
    [
        played({**BODY, "max_tokens": None}),
        played(made=None),
        played(is_odd=True),
        replace(played(), settled=None),
    ],
)
def test_what_does_not_count(result) -> None:
    assert report(result) == {}


def test_the_table_has_the_highest_of_all_parts() -> None:
    wide = replace(played(), opened=SimpleNamespace(bound_pusd=900))
    lines = bounds_table([report(played()), report(wide)]).splitlines()
    assert lines[1].split() == ["text", "2", "5.25", "9.00", "3.00", "1.00"]
