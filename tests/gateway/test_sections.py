"""Sections are strict and frozen, and a switch is no number."""

import pytest
from pydantic import ValidationError

from gateway.sections import Positive, Section


class Lamp(Section):
    watts: Positive = 5.0
    lit: bool = False


def test_a_section_takes_what_it_knows_and_keeps_it():
    lamp = Lamp.model_validate({"watts": 3, "lit": True})
    with pytest.raises(ValidationError):
        lamp.watts = 4.0
    for given in ({"color": "red"}, {"watts": True}, {"watts": 0}, {"watts": float("nan")}):
        with pytest.raises(ValidationError):
            Lamp.model_validate(given)
