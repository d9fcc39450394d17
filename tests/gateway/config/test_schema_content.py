"""The section `content`."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_content import ContentHookSection, ContentSection


def test_an_address_is_outside_and_has_half_a_second_unless_stated() -> None:
    hook = ContentHookSection(url="https://guard.example/x")
    assert (hook.address_residency, hook.timeout_ms, hook.stage) == ("any", 500.0, "before")


@pytest.mark.parametrize(
    "given",
    [
        {"url": "ftp://x"},
        {"url": "http://x", "timeout_ms": 60_000},
        {"url": "http://x", "stage": "y"},
    ],
)
def test_a_hook_that_cannot_be_asked_is_refused(given) -> None:
    with pytest.raises(ValidationError):
        ContentHookSection(**given)


def test_a_kind_s_name_can_stand_in_a_header() -> None:
    with pytest.raises(ValidationError):
        ContentSection(patterns={"My Kind": "x"})
