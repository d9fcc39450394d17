"""Settings of sections that are off: a port was set, and no dashboard started."""

import pytest

from gateway.config.checks.idle_sections import check_idle_sections
from gateway.config.document import read_document
from gateway.config.draft import draft_settings


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for fault in check_idle_sections(settings)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dashboard: {port: 9001}", "dashboard.port: has no effect without `dashboard.enabled: tr"),
        ("response_cache: {bytes: 16777216}", "response_cache.bytes: has no effect without"),
        ("server: {idempotency: {replay: {hours: 2}}}", "replay.hours: has no effect without"),
    ],
)
def test_a_setting_of_a_section_that_is_off_is_told(text, said) -> None:
    (fault,) = found(text)
    assert said in fault


@pytest.mark.parametrize(
    "text",
    [
        "models: {}",
        "dashboard: {enabled: false, port: 9001}",
        "dashboard: {enabled: true, port: 9001}",
        "dashboard: {access_file: people.toml}",
        "batches: {}",
    ],
)
def test_what_was_decided_or_acts_is_not_told(text) -> None:
    assert found(text) == []
