"""What the `response_cache` section may hold."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_response_cache import ResponseCacheSection


@pytest.mark.parametrize(
    "given", [{"bytes": 5}, {"max_age_s": 0}, {"answer_bytes": 1}, {"enabled": "maybe"}, {"ttl": 1}]
)
def test_what_a_field_cannot_mean_is_refused(given) -> None:
    with pytest.raises(ValidationError):
        ResponseCacheSection.model_validate(given)


def test_it_is_off_unless_it_says_otherwise() -> None:
    section = ResponseCacheSection()
    assert (section.enabled, section.models, section.max_age_s) == (False, (), 3600.0)
