"""The bounds of keys that members make for themselves."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_self_service import SelfServiceSection


def test_such_keys_end_with_their_maker_if_nobody_says_otherwise() -> None:
    section = SelfServiceSection()
    assert (section.when_maker_ends, section.days) == ("end", None)
    assert SelfServiceSection(keys=0).keys == 0


@pytest.mark.parametrize(
    "wrong", [{"keys": -1}, {"keys_per_day": 0}, {"days": 0}, {"when_maker_ends": "stay"}], ids=str
)
def test_what_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(ValidationError):
        SelfServiceSection(**wrong)
