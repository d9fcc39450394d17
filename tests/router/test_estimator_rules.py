"""The table of estimators is whole, and the guide that shows it to people is the same."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.estimator_rules import DAY_S, ESTIMATORS, Estimator, Objection, share_left

GUIDE = Path(__file__).parents[2] / "docs" / "explanation" / "estimates.md"


@pytest.mark.parametrize("estimator", Estimator)
def test_each_estimator_has_a_rule_that_the_guide_shows(estimator) -> None:
    rule, guide = ESTIMATORS[estimator], GUIDE.read_text(encoding="utf-8").splitlines()
    assert rule.step is None or rule.step > 1.0
    step = "at once, to the limit" if rule.step is None else f"{rule.step:g}"
    returns = "by time alone" if rule.returns is None else f"{rule.returns:,}"
    half = f"{rule.half_life_s / DAY_S:g} d"
    name, told = f"`{estimator.value}`", (rule.learns_from, rule.key, rule.scopes)
    assert f"| {' | '.join((name, *told, step, half, returns))} |" in guide
    words = f"`{rule.shown}`", f"`{rule.reset}`"
    assert f"| {' | '.join((name, rule.limits, rule.shared, *words))} |" in guide


def test_the_guide_names_no_estimator_that_is_not_registered() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*\|.*\|.*\|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted([*Estimator, *Estimator])


@given(st.floats(0.0, 1e9), st.floats(0.0, 1e9), st.floats(1.0, 1e7))
def test_time_takes_the_same_in_steps_as_in_one(first_s, then_s, half_life_s) -> None:
    left = share_left(first_s, half_life_s) * share_left(then_s, half_life_s)
    assert left == pytest.approx(share_left(first_s + then_s, half_life_s), rel=1e-6, abs=1e-300)
    assert share_left(half_life_s, half_life_s) == 0.5
    assert share_left(-first_s, half_life_s) == 1.0  # the clock was set back


@pytest.mark.parametrize("objection", Objection)
def test_the_guide_explains_each_reason(objection) -> None:
    assert f"`{objection.value}`" in GUIDE.read_text(encoding="utf-8")
