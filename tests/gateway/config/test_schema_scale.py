"""The section `scale`: its defaults advise, and nothing else may be written in it."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from gateway.config.schema_scale import ActuatorSection, ScaleSection


def test_a_pool_advises_until_it_is_told_to_act():
    scale = ScaleSection(max=4)
    assert (scale.mode, scale.by, scale.actuator.kind) == ("advise", "dollars", "supervisor")
    assert (scale.unit_s, ScaleSection(max=1, billing="hour").unit_s) == (1, 3600)


def test_the_rent_is_stated_or_the_gpus():
    assert ScaleSection(max=1).rent(2, Decimal("2.5")) == 5
    assert ScaleSection(max=1).rent(2, None) is None
    assert ScaleSection(max=1, rent_usd_per_hour="3").rent(2, None) == 3


@pytest.mark.parametrize(
    "wrong", [{"by": "queue"}, {"max": 65}, {"max": 1, "billing": "day"}, {"max": 1, "look_s": 0}]
)
def test_what_is_no_value_is_refused(wrong):
    with pytest.raises(ValidationError):
        ScaleSection.model_validate(wrong)


def test_a_program_has_words_and_no_shell():
    with pytest.raises(ValidationError):
        ActuatorSection.model_validate({"kind": "command", "argv": "rent.sh --all"})
