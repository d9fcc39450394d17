"""Sections are strict and frozen, and a switch is no number."""

import pytest
from pydantic import ValidationError

from gateway.config.schema import Settings
from gateway.config.sections import Positive, Section, section_of


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


@pytest.mark.parametrize(
    ("field", "suffix"),
    [("models", ".NAME"), ("pools", ".NAME"), ("policies", "[]"), ("server", "")],
)
def test_a_section_is_found_in_the_map_or_list_that_holds_it(field, suffix):
    section, found = section_of(Settings.model_fields[field].annotation)
    assert section is not None
    assert found == suffix


def test_a_plain_field_holds_no_section():
    assert section_of(Settings.model_fields["prices"].annotation) == (None, "")
