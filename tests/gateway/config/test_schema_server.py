"""What the `server` section may hold."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_server import ServerSection


@pytest.mark.parametrize(
    "given",
    [
        {"workers": True},  # a bare `yes`
        {"host": True},  # a bare `on`
        {"timeouts": {"connect_s": float("inf")}},
        {"timeouts": {"connect_s": 0}},
        {"idempotency": {"replay": {"hours": 0}}},
        {"cors_origins": ["app.example.com"]},
        {"worker": 1},
        {"members": {"allow": ["api_key"]}},  # the configuration says it elsewhere
        {"members": {"allow": ["top_k"]}},  # it passes by itself
        {"members": {"refuse": ["messages"]}},
    ],
)
def test_what_a_field_cannot_mean_is_refused(given) -> None:
    with pytest.raises(ValidationError):
        ServerSection.model_validate(given)


def test_what_it_can_mean_is_read() -> None:
    section = ServerSection.model_validate({"workers": 2, "host": "0.0.0.0"})
    assert (section.workers, section.host) == (2, "0.0.0.0")
    members = {"allow": ["prompt_logprobs"], "refuse": ["logit_bias", "api_key"]}
    assert ServerSection.model_validate({"members": members}).members.refuse[1] == "api_key"
