"""The table of estimators is whole, and the guide that shows it to people is the same."""

from pathlib import Path

import pytest

from router.estimator_rules import ESTIMATORS, Estimator, Objection

GUIDE = Path(__file__).parents[2] / "deploy" / "ESTIMATES.md"


@pytest.mark.parametrize("estimator", Estimator)
def test_each_estimator_has_a_rule_that_the_guide_shows(estimator) -> None:
    rule, guide = ESTIMATORS[estimator], GUIDE.read_text(encoding="utf-8")
    assert rule.step > 1.0
    for told in (f"`{estimator.value}`", rule.learns_from, rule.key, rule.limits, rule.shared):
        assert told in guide
    assert f"| {rule.step:g} | {rule.returns:,} |" in guide


@pytest.mark.parametrize("objection", Objection)
def test_the_guide_explains_each_reason(objection) -> None:
    assert f"`{objection.value}`" in GUIDE.read_text(encoding="utf-8")
