"""Pools that cannot size themselves are said with their place and the fix."""

import pytest

from gateway.config.config_facts import ConfigFacts, check_act_scored
from gateway.config.crosschecks_scale import AdviceScore, check_scale
from gateway.config.document import read_document
from gateway.config.draft import draft_settings
from gateway.config.schema import Settings

GOOD = """
models:
  own: {targets: ["pool:a", "openai/x"]}
peers: {}
pools:
  a:
    engine: {model: /models/a, replicas: 4}
    gpu: {type: H200, usd_per_hour: 3, billing: on_demand}
    scale: {max: 4, mode: act}
"""
ENDPOINTS = 'endpoints: ["http://10.0.0.4/v1"]'


def settings_of(text: str) -> Settings:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return settings


def found(text: str) -> list[str]:
    return [fault.text("f") for fault in check_scale(settings_of(text))]


def test_the_sound_file_has_no_faults():
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("max: 4", "max: 4, min: 5", "pools.a.scale.min: 5 is more than `max`, 4"),
        ("max: 4", "max: 4, reserved: 5", "pools.a.scale.reserved: 5 is more than `max`, 4"),
        ("max: 4", "max: 4, interruptions_per_day: 2",
         "pools.a.scale.interruptions_per_day: is of `billing: spot`, and `billing` is `second`"),
        ("max: 4", "max: 0", "pools.a.scale.max: must be at least 1"),
        ("scale: {max: 4", "roles: {prefill: 1, decode: 3}\n    scale: {max: 4",
         "pools.a.scale: a pool with `roles` has a fixed number of engines"),
        ("max: 4", "max: 5", "pools.a.scale.max: 5 is more than the pool's 4 engines"),
        (", usd_per_hour: 3", "", "pools.a.scale.rent_usd_per_hour: is required"),
        (", billing: on_demand", "", "pools.a.gpu.billing: `reserved` hours are paid whether"),
        ("replicas: 4", ENDPOINTS + "}\n    gpu: {type: H200, usd_per_hour: 3, "
         "billing: on_demand}\n    scale: {max: 1, mode: act}\n  b:\n    engine: {model: /m, "
         "replicas: 4", "pools.a.scale.actuator.kind: `supervisor` sizes `replicas`"),
        ("mode: act", "mode: act, actuator: {kind: command, argv: [/bin/x]}",
         "pools.a.scale.actuator.kind: `command` sizes engines of other machines"),
        ("mode: act", "mode: act, actuator: {name: vllm}",
         "pools.a.scale.actuator.name: is of `kind: kubernetes` and `kind: keda`: leave"),
        ("    scale:", '    upkeep: {stop: "0 20 * * *", start: "0 7 * * *"}\n    scale:',
         "pools.a.upkeep.stop: stops engines that `scale` starts"),
        ("peers: {}", 'peers: {hosts: ["10.0.0.9:7000"], secret_env: PEERS}',
         "pools.a.scale.actuator.kind: `supervisor` knows one host's engines"),
    ],
)  # fmt: skip
def test_each_fault_is_said_where_it_is(before, after, said):
    assert [fault for fault in found(GOOD.replace(before, after, 1)) if said in fault]


@pytest.mark.parametrize(
    ("actuator", "said"),
    [
        ("{kind: command}", "actuator.argv: is required"),
        ("{kind: keda, name: vllm}", "actuator.kind: `keda` asks how many engines to run: set"),
        ("{kind: keda}", "actuator.name: is required"),
        ("{kind: command, argv: [/bin/x], name: vllm}", "actuator.name: is of `kind: kubernetes`"),
        ("{kind: command, argv: [rent]}", "actuator.argv: `rent` has no full path"),
        ("{kind: kubernetes}", "actuator.name: is required"),
        ("{kind: kubernetes, name: vllm, argv: [/bin/x]}", "actuator.argv: is of `kind: command`"),
    ],
)
def test_engines_of_other_machines_need_what_starts_them(actuator, said):
    text = GOOD.replace("replicas: 4", ENDPOINTS).replace("max: 4", f"max: 1, actuator: {actuator}")
    assert [fault for fault in found(text) if said in fault]


def test_a_deployment_behind_one_address_may_be_larger_than_its_endpoints():
    text = GOOD.replace("replicas: 4", ENDPOINTS).replace(
        "max: 4", "max: 4, actuator: {kind: kubernetes, name: vllm, workload: Deployment}"
    )
    assert found(text) == []


def test_hours_that_are_paid_anyway_may_be_advised_on():
    (fault,) = found(GOOD.replace(", billing: on_demand", "").replace("act}", "advise}"))
    assert fault.startswith("f: warning: pools.a.scale.mode") or "warning" in fault


@pytest.mark.parametrize(
    ("score", "more", "said"),
    [
        (None, "", "`act` needs 24 h of scored advice, and the ledger has 0.0 h"),
        (AdviceScore(23.0, 5.0), "", "the ledger has 23.0 h: set `advise` until then, or"),
        (AdviceScore(48.0, -5.0), "", "it would have cost $5.00 more than the fleet as it was"),
        (AdviceScore(24.0, 0.0), "", None),
        (None, ", act_unscored: true", None),
        (AdviceScore(48.0, -5.0), ", act_unscored: true", None),
    ],
)
def test_a_pool_acts_once_its_advice_was_scored_and_earned(score, more, said):
    settings = settings_of(GOOD.replace("mode: act", f"mode: act{more}"))
    scores = {} if score is None else {"a": score}
    facts = ConfigFacts(None, 0, None, scores=scores)
    faults = [fault.text("f") for fault in check_act_scored(settings, facts)]
    if said is None:
        assert faults == []
    else:
        (fault,) = faults
        assert "pools.a.scale.mode" in fault
        assert said in fault
        assert "act_unscored: true" in fault


def test_advice_needs_no_score():
    settings = settings_of(GOOD.replace("mode: act", "mode: advise"))
    assert list(check_act_scored(settings, ConfigFacts(None, 0, None))) == []
