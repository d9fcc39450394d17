"""The plan as data."""

import pytest

from router.scaling.plan import (
    REASON_WORDS,
    EngineWorth,
    FleetAlternative,
    ScalePlan,
    ScaleReason,
)


def test_every_reason_has_its_words() -> None:
    assert set(REASON_WORDS) == set(ScaleReason)
    assert len(set(REASON_WORDS.values())) == len(ScaleReason)


def test_an_alternative_adds_up() -> None:
    assert FleetAlternative(3, rent_pusd=7, api_pusd=11, start_pusd=2).total_pusd == 20


@pytest.mark.parametrize(
    ("running", "wanted", "stop", "starts"),
    [(2, 5, (), 3), (5, 2, ("a", "b", "c"), 0), (3, 3, (), 0), (3, 3, ("a",), 1)],
)
def test_starts_are_what_is_wanted_less_what_stays(running, wanted, stop, starts) -> None:
    plan = ScalePlan(
        "chat", 0, wanted, running, stop, 3600.0, None, EngineWorth(1, None, 5), (), (),
        ScaleReason.HOLD, "", 1,
    )  # fmt: skip
    assert plan.starts == starts
