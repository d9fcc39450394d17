"""The collector's address: one that cannot be meant is refused with the field's name."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_otel import OpenTelemetrySection


@pytest.mark.parametrize(
    "address", ["http://collector:4318", "https://otel.example/in", "http://10.0.0.3:4318/"]
)
def test_addresses_of_collectors(address) -> None:
    assert OpenTelemetrySection(endpoint=address).endpoint == address


@pytest.mark.parametrize(
    "address",
    [
        "collector:4318",
        "grpc://collector:4317",
        "http://",
        "http://me:secret@collector",
        "http://a b",
    ],
)
def test_what_is_no_address_or_holds_a_password_is_refused(address) -> None:
    with pytest.raises(ValidationError, match="endpoint"):
        OpenTelemetrySection(endpoint=address)


@pytest.mark.parametrize("address", ["http://c:4318", "http://c:4318/"])
def test_signals_have_paths_of_their_own(address) -> None:
    settings = OpenTelemetrySection(endpoint=address)
    assert settings.traces_url == "http://c:4318/v1/traces"
    assert settings.metrics_url == "http://c:4318/v1/metrics"
    assert OpenTelemetrySection().traces_url is None


def test_nothing_is_sent_unless_somebody_says_where() -> None:
    assert OpenTelemetrySection().endpoint is None


@pytest.mark.parametrize("sample", [-0.1, 1.1, float("nan")])
def test_a_sample_is_a_share(sample) -> None:
    with pytest.raises(ValidationError, match="sample"):
        OpenTelemetrySection(sample=sample)
