"""What the `store` section may hold."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_store import StoreSection


@pytest.mark.parametrize(
    "given", [{"days": 0}, {"days": 400}, {"team_bytes": 5}, {"enabled": "maybe"}, {"hours": 1}]
)
def test_what_a_field_cannot_mean_is_refused(given) -> None:
    with pytest.raises(ValidationError):
        StoreSection.model_validate(given)


def test_answers_are_stored_for_thirty_days_unless_it_says_otherwise() -> None:
    section = StoreSection()
    assert (section.enabled, section.days) == (True, 30.0)
    assert section.object_bytes < section.team_bytes < section.total_bytes
