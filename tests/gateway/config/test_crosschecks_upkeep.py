"""Upkeep that cannot be done is said with its place."""

import pytest

from gateway.config.crosschecks_upkeep import check_upkeep
from gateway.config.document import read_document
from gateway.config.draft import draft_settings

GOOD = """
models:
  own: {targets: ["pool:a"]}
  both: {targets: ["pool:a", "openai/x"]}
pools:
  a:
    engine: {model: /models/a, replicas: 2}
    gpu: {type: H200}
    upkeep: {timezone: Europe/Berlin, restart: "0 4 * * SUN", restart_on_decay: 0.15}
"""


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for fault in check_upkeep(settings)]


def test_the_sound_file_has_no_faults():
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"0 4 * * SUN"', '"0 4 * *"', "pools.a.upkeep.restart: `0 4 * *` is not a time: has five"),
        ('"0 4 * * SUN"', '"0 4 * * SO"', "is not a time: Bad day-of-week; write it like"),
        ("Europe/Berlin", "Berlin", "pools.a.upkeep.restart: `Berlin` is not an IANA time zone"),
        ("restart_on_decay: 0.15", 'stop: "0 20 * * *"', "pools.a.upkeep.start: is required"),
        ("restart_on_decay: 0.15", 'start: "0 7 * * *"', "pools.a.upkeep.stop: is required"),
        ("replicas: 2", 'endpoints: ["http://10.0.0.4/v1"]', "is for engines that are started"),
        ("replicas: 2", "replicas: 1", "its only engine is never restarted: `own` has no other"),
        ("restart_on_decay: 0.15", 'stop: "0 20 * * *", start: "0 7 * * *"',
         "warning: pools.a.upkeep.stop: `own` has no other target: its requests are refused"),
    ],
)  # fmt: skip
def test_each_fault_is_said_where_it_is(before, after, said):
    (fault,) = found(GOOD.replace(before, after))
    assert said in fault


def test_one_engine_may_restart_where_every_model_has_another_target():
    text = GOOD.replace("replicas: 2", "replicas: 1").replace(
        '["pool:a"]', '["pool:a", "openai/y"]'
    )
    assert found(text) == []
