"""Faults of policies, one row each, over a file that has none and uses everything."""

import pytest

from gateway.config.crosschecks import CHECKS
from gateway.config.document import read_document
from gateway.config.draft import draft_settings

GOOD = """
models:
  chat:
    targets: ["pool:own", "openai/small"]
    compare_with: ["openai/small"]
    quality_loss: {"pool:own": 0.0, "openai/small": 0.1}
  other: {targets: ["pool:own"], compare_with: ["openai/small"]}
pools:
  own: {engine: {endpoints: ["http://h:1/v1"]}, gpu: {type: H200}}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
policies:
  - name: night
    match:
      models: [chat]
      when: 'prompt_tokens > 100 && has(tags.app)'
      times: [{days: [mon, fri], starts: 22:00, ends: "06:00", timezone: Europe/Berlin}]
    candidates: ["pool:own", "openai/small"]
    weights: {"pool:own": 3}
    canary: {target: openai/small, percent: 5}
    max_quality_loss: 0.05
  - {name: watch, shadow: true}
  - {name: last}
"""


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for check in CHECKS for fault in check(settings)]


def test_the_sound_file_has_no_faults():
    draft = draft_settings(read_document(GOOD))
    assert draft.faults == ()
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("prompt_tokens > 100", "prompt_tokens >", "policies[0].match.when: the condition at 1:"),
        ("prompt_tokens > 100", "tenant > 100", "the condition has no fact `tenant`; facts are"),
        ("has(tags.app)", 'tags.app == "x"', "warning: policies[0].match.when: cannot be told of"),
        ("has(tags.app)", "has(tags.app) && tags.app == 1",
         "warning: policies[0].match.when: `tags.app` is text, and never equal to `1`"),
        ("name: night", "name: default", "warning: policies[0].name: `default` marks requests"),
        ("Europe/Berlin", "Europe/Berlim", "times[0].timezone: `Europe/Berlim` is not an IANA"),
        ('"06:00"', "22:00", "times[0].ends: `22:00` to `22:00` is not a time"),
        ('candidates: ["pool:own", ', 'candidates: ["pool:owm", "pool:own", ',
         "candidates[0]: `pool:owm` is not a target of this policy's models; did you mean"),
        ('{"pool:own": 3}', '{"pool:owm": 3}', "weights.pool:owm: `pool:owm` is not a target"),
        ("{target: openai/small", "{target: openai/large", "canary.target: `openai/large` is no"),
        ('["pool:own", "openai/small"]\n    weights', '["pool:own"]\n    weights',
         "canary.target: `openai/small` is not among this policy's `candidates`"),
        ('{"pool:own": 3}', '{"pool:own": 3, "openai/small": 1}',
         "weights.openai/small: the canary has its percent"),
        ("max_quality_loss: 0.05", "residency: internal_only",
         "canary.target: internal_only, but `openai/small` is an external API"),
        ('"openai/small": 0.1}', '"openai/smal": 0.1}',
         "quality_loss.openai/smal: `openai/smal` is not a target of this model"),
        ('"openai/small": 0.1}', "}", "max_quality_loss: `openai/small` of `chat` is left out"),
        ("{name: watch, shadow: true}", "{name: watch}",
         "warning: policies[2]: never used: `watch` above it matches every request"),
        ("{name: last}", """{name: rest, match: {models: [chat]}}
  - {name: last, match: {models: [chat], teams: [search]}}""",
         ("warning: policies[3]: never used: `rest` above it matches all requests "
"that this one matches")),
        ("{name: last}", "{name: second, shadow: true, match: {teams: [search]}}\n  - {name: last}",
         "warning: policies[2]: never used: `watch` above it matches every request"),
        ("{name: last}", "{name: last, queue_ms: 500}",
         "warning: policies[2].queue_ms: has no effect, because `otherwise` is `reject`: set"),
        ("{name: last}", '{name: last, candidates: ["openai/smal"]}',
         "policies[2].candidates[0]: `openai/smal` is not a target of this policy's models; did"),
        ("name: watch", "name: night", "policies[1].name: policy names must be unique"),
    ],
)  # fmt: skip
def test_each_fault_is_told(before, after, said):
    assert before in GOOD
    lines = found(GOOD.replace(before, after, 1))
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("percent: 5", "percent: 101", "percent"),
        ('"pool:own": 3', '"pool:own": 0', "weights"),
        ("22:00", '"25:00"', "starts"),
        ("[mon, fri]", "[monday]", "days"),
        ("percent: 5", "share: 5", "share"),
    ],
)
def test_what_no_field_means_is_told_beside_it(before, after, said):
    faults = draft_settings(read_document(GOOD.replace(before, after, 1))).faults
    assert any(said in fault.path for fault in faults), faults
