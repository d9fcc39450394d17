"""The money cases of the field, through the whole gateway, against their right values."""

from pathlib import Path

import pytest
from field_cases import load_cases
from field_judge import faults_of

CASES = load_cases(Path(__file__).parent / "money")
# Cases that are wrong today. A mend removes its rows: a row that comes out right fails the suite.
NOT_YET: dict[str, str] = {}


def marked(case):
    reason = NOT_YET.get(case.name)
    marks = [] if reason is None else [pytest.mark.xfail(strict=True, reason=reason)]
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_a_case_has_its_right_value(play, case) -> None:
    faults = faults_of(play(case))
    assert not faults, "; ".join(faults)


def test_the_table_names_cases() -> None:
    assert set(NOT_YET) <= {case.name for case in CASES}
