"""A cache that cannot hold its answers, or is for models that are not there."""

import pytest

from gateway.config.crosschecks_cache import check_response_cache
from gateway.config.document import read_document
from gateway.config.draft import draft_settings

GOOD = """
server: {workers: 4}
models:
  chat: {targets: ["openai/x"]}
  other: {same_as: chat}
response_cache: {enabled: true, models: [chat], bytes: 16777216, answer_bytes: 1048576}
"""


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for fault in check_response_cache(settings)]


def test_the_sound_file_has_no_faults() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[chat]", "[chta]", "response_cache.models: no model named `chta`; did you mean `chat`"),
        ("1048576", "1048577",
         "response_cache.answer_bytes: must be at most 1048576: each of 4 workers"),
    ],
)  # fmt: skip
def test_each_fault_names_its_field_and_the_fix(before, after, said) -> None:
    (fault,) = found(GOOD.replace(before, after))
    assert said in fault
    assert found(GOOD.replace(before, after).replace("enabled: true", "enabled: false")) == []
