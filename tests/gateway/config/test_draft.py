"""A faulty document still becomes settings, and what follows from a fault is not told again."""

import time

import pytest

from gateway.config.document import read_document
from gateway.config.draft import FAULTS_MOST, draft_settings
from gateway.config.faults import ConfigFault

TEXT = """
server: {port: 80808, workers: 3}
models:
  chat: {targets: [pool:a, 7], wat: 1}
pools:
  a: {engine: {replica: 2, port: 9000}}
policies:
  - {slo: {ttft_ms: 100}}
budgets:
  - {scope: global, usd: -1, period: day}
  - 5
  - {scope: external, usd: 7}
"""


def draft(text: str):
    return draft_settings(read_document(text))


def test_every_fault_is_told_once_and_the_rest_is_read():
    made = draft(TEXT)
    assert sorted(fault.path for fault in made.faults) == [
        "budgets[0].usd", "budgets[1]", "models.chat.targets[1]", "models.chat.wat",
        "policies[0].name", "pools.a.engine.replica", "pools.a.gpu", "server.port",
    ]  # fmt: skip
    settings = made.settings
    assert settings is not None
    assert (settings.server.workers, settings.server.port) == (3, 8080)
    assert settings.models["chat"].targets[0] == "pool:a"
    assert settings.pools["a"].engine.port == 9000
    assert settings.policies[0].slo.ttft_ms == 100
    assert (settings.budgets[0].period, settings.budgets[2].usd) == ("day", 7)


@pytest.mark.parametrize(
    ("fault", "follows"),
    [
        (ConfigFault(("models", "chat", "targets", 1), ""), True),
        (ConfigFault(("models", "chat", "targets", 0), ""), False),
        (ConfigFault(("models", "chat"), ""), True),  # a fault of the whole section may follow
        (ConfigFault(("models", "chat", "residency"), ""), False),
        (ConfigFault(("pools", "a", "engine", "replicas"), ""), True),  # meant by `replica`
        (ConfigFault(("pools", "a", "engine", "port"), ""), False),
        (ConfigFault(("budgets", 1, "scope"), ""), True),
        (ConfigFault(("budgets", 2, "scope"), ""), False),
        (ConfigFault(("budgets", 2, "scope"), "", about=("server", "port")), True),
        (ConfigFault(("budgets", 2, "scope"), "", about=("server", "host")), False),
    ],
)
def test_what_follows_from_a_broken_part_is_known(fault, follows):
    assert draft(TEXT).is_consequence(fault) is follows


def test_an_unknown_key_that_means_nothing_breaks_nothing():
    made = draft("models: {chat: {zebra: 1}}")
    assert not made.is_consequence(ConfigFault(("models", "chat"), ""))


def test_a_slip_beside_the_key_it_looks_like_hides_nothing_of_that_key():
    made = draft("modles: {}\nmodels: {chat: {targets: [pool:a]}}")
    assert not made.is_consequence(ConfigFault(("models", "chat", "targets", 0), ""))
    assert draft("modles: {}").is_consequence(
        ConfigFault(("policies", 0), "", about=("models", "chat"))
    )


def test_a_slip_is_one_fault_although_the_key_it_means_is_missing():
    made = draft("budgets: [{scop: global, usd: 1}]")
    assert [fault.path for fault in made.faults] == ["budgets[0].scop"]


def test_a_sound_document_has_no_faults():
    made = draft("server: {port: 9090}")
    assert made.settings is not None
    assert (made.faults, made.broken) == ((), frozenset())
    assert not made.is_consequence(ConfigFault(("server", "port"), ""))


@pytest.mark.parametrize(
    "text",
    ["models: 3\npools: [1]", "policies: {a: 1}", "pools: {a: {engine: 1, gpu: 2}}",
     "budgets: [[], {}, 1]", "policies: [{match: {models: [[1]], teams: 2}}]", "1: 2\n3: 4"],
)  # fmt: skip
def test_whatever_is_wrong_something_is_left_to_look_at(text):
    made = draft(text)
    assert made.settings is not None
    assert made.faults


def test_what_is_no_yaml_leaves_nothing():
    made = draft("a: [")
    assert made.settings is None
    assert "not YAML" in made.faults[0].message


@pytest.mark.parametrize(
    "text",
    [
        "policies: [" + "a," * 30_000 + "]",
        "policies:\n- name: a\n" + "".join(f"  k{number}: 1\n" for number in range(8000)),
        "policies:\n- name: a\n" + "  ? [a]\n  : 1\n" * 4000,
    ],
)
def test_many_faults_cost_what_reading_them_does(text: str) -> None:
    """A megabyte of them, each looked for among all others, would take a thread for hours."""
    began_s = time.process_time()
    made = draft(text)
    assert time.process_time() - began_s < 15
    assert made.faults


def test_of_too_many_faults_the_first_are_told_and_how_many_more() -> None:
    made = draft("policies: [" + "a," * 300 + "]")
    assert len(made.faults) == FAULTS_MOST + 1
    assert made.faults[-1].message == "and 100 more faults"
    assert made.settings is None
