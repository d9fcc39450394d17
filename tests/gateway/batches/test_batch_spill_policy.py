"""Which lines leave for a provider's batch, and when."""

import math

from gateway.batches.batch_spill_policy import (
    BatchBacklog,
    BatchSpillPolicy,
    CompletionRate,
    batch_providers,
    spill_policy_of,
    surplus_of,
)
from gateway.config.settings import parse

CONFIG = """
models:
  both: {targets: [pool:main, openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}
  api: {targets: [openai/gpt-4o-mini]}
  other: {targets: [groq/x]}
  alias: {same_as: api}
  home: {targets: [pool:main], residency: internal_only, compare_with: [openai/gpt-4o-mini]}
  openai/*: passthrough
pools:
  main: {engine: {kind: simulated, model: m, replicas: 1}, gpu: {type: H200}}
providers:
  openai: {api_key_env: KEY, batch: true}
  groq: {api_key_env: KEY}
"""
HOUR_S = 3600.0


def test_models_whose_lines_may_leave() -> None:
    settings = parse(CONFIG, name="test")
    assert batch_providers(settings) == {"openai"}
    found = {
        name: spill_policy_of(settings, name) for name in ("both", "api", "alias", "other", "home")
    }
    assert found == {
        "both": BatchSpillPolicy(onward=True, own=True),
        "api": BatchSpillPolicy(onward=True, own=False),
        "alias": BatchSpillPolicy(onward=True, own=False),
        "other": BatchSpillPolicy(onward=False, own=False),
        "home": BatchSpillPolicy(onward=False, own=True),
    }
    assert found["api"].is_provider_only
    assert not found["both"].is_provider_only
    assert spill_policy_of(settings, "openai/gpt-5.5").is_provider_only
    assert not spill_policy_of(settings, "nobody").onward


def test_a_pace_is_known_after_a_while_and_forgets() -> None:
    pace = CompletionRate()
    assert pace.per_s(0.0) is None
    pace.observe(0, 0.0)
    pace.observe(60, 60.0)
    assert pace.per_s(60.0) is None
    pace.observe(600, 600.0)
    assert pace.per_s(600.0) == 1.0
    for minute in range(1, 70):
        pace.observe(600, 600.0 + 60.0 * minute)
    assert pace.per_s(600.0 + 60.0 * 69) == 0.0, "an hour without any"


def test_what_engines_will_not_have_done_is_left_over() -> None:
    queues = [BatchBacklog("late", 1000, 3 * HOUR_S), BatchBacklog("soon", 3600, 2 * HOUR_S)]
    assert surplus_of(queues, 1.0, 12 * HOUR_S) == {}
    # Engines do 2,880 lines in the two hours that `soon` has, and 4,320 in all three.
    assert surplus_of(queues, 0.4, 12 * HOUR_S) == {"soon": 3600 - 2880}
    assert surplus_of(queues, 0.25, 12 * HOUR_S) == {"soon": 3600 - 1800, "late": 1000 - 900}
    assert surplus_of(queues, 0.0, 12 * HOUR_S) == {"soon": 3600, "late": 1000}


def test_nothing_leaves_before_its_time_or_when_it_is_too_late() -> None:
    assert surplus_of([BatchBacklog("b", 10, 13 * HOUR_S)], 0.0, 12 * HOUR_S) == {}
    assert surplus_of([BatchBacklog("b", 10, 0.5 * HOUR_S)], 0.0, 12 * HOUR_S) == {}
    assert surplus_of([BatchBacklog("b", 10, 12 * HOUR_S)], 0.0, 12 * HOUR_S) == {"b": 10}
    assert surplus_of([BatchBacklog("b", 10, 20 * HOUR_S)], 0.0, math.inf) == {"b": 10}
