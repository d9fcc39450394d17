"""The money cases of the field, through the whole gateway, against their right values."""

from pathlib import Path

import pytest
from field_cases import load_cases
from field_judge import faults_of

CASES = load_cases(Path(__file__).parent / "money")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_its_right_value(play, case) -> None:
    faults = faults_of(play(case))
    assert not faults, "; ".join(faults)
