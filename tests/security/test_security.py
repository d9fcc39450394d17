"""What is quick of the goals of security, each with its control; all of it is `make security`."""

import pytest
import security
import urls
from case import Case, CaseFigures, Given, MissingPart

QUICK = (
    "canaries reached by a target's name", "requests read otherwise",
    "conditions that escape", "cells that a spreadsheet runs", "statements made of texts",
    "engine paths that answer",
    "findings in sse", "findings in json", "findings in prices", "findings in pricecsv",
    "another team's prompts, told by answers",
)  # fmt: skip
QUICK_CASES = [case for case in security.CASES if case.figure in QUICK]


def test_the_quick_ones_are_there() -> None:
    assert [case.figure for case in QUICK_CASES] == list(QUICK)


@pytest.mark.parametrize("case", QUICK_CASES, ids=lambda case: f"{case.goal}-{case.figure}")
def test_a_goal_holds_and_its_control_does_not(case) -> None:
    try:
        found, control = (case.play(Given(broken, full=False)) for broken in (False, True))
    except MissingPart as missing:
        pytest.skip(str(missing))
    assert case.holds(found), found
    assert not case.holds(control), control


def test_there_are_as_many_forms_as_the_goal_names_and_each_is_one() -> None:
    forms = urls.forms(80)
    assert len(forms) == len(set(forms)) >= 300


def test_a_missed_bar_fails_the_run_and_a_control_that_holds_does_too(
    monkeypatch, tmp_path
) -> None:
    values = {False: 0, True: 3}
    case = Case("S1", "x", lambda given: CaseFigures(values[given.broken]), "nothing")
    monkeypatch.setattr(security, "CASES", (case,))
    monkeypatch.setattr(security, "OUT", tmp_path / "security.json")
    monkeypatch.setattr(security, "ROOT", tmp_path)
    assert security.main([]) == 0
    values[False] = 1
    assert security.main([]) == 1
    values.update({False: 0, True: 0})
    assert security.main([]) == 1
    assert "the control is not red" in (tmp_path / "security.json").read_text()
    assert security.main(["--only", "S99"]) == 2


@pytest.mark.parametrize(
    ("least", "value", "holds"),
    [(False, 2, True), (False, 3, False), (True, 2, True), (True, 1, False)],
)
def test_a_bar_is_the_most_or_the_least(least, value, holds) -> None:
    case = Case("S1", "x", lambda _: CaseFigures(value), "", bar=2, least=least)
    assert case.holds(CaseFigures(value)) is holds
    assert not case.holds(CaseFigures(value, faults=("another",)))
