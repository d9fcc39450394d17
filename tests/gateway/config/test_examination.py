"""A file against the world around it: every fault at once, by line; what is shipped has none."""

import copy
import dataclasses
from pathlib import Path

import pytest
import yaml

from gateway.config.config_facts import ConfigFacts
from gateway.config.examination import examine
from gateway.config.settings import load, parse
from gateway.config.surroundings import gather_facts

ROOT = Path(__file__).resolve().parents[3]
AT_US = 1_795_000_000_000_000  # 2026-11-18

GOOD = """
models:
  chat: {targets: ["pool:a", "openai/gpt-4o-mini"], compare_with: ["openai/gpt-4o-mini"]}
pools:
  a:
    engine: {model: /models/a, replicas: 1}
    gpu: {type: H200, usd_per_hour: 3.50, source: contract, since: 2026-11-01}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
"""


TEN_FAULTS = """\
server: {port: 8080, port: 9090}
modles: {}
models:
  chat: {targets: ["pool:own", "nobody/x"], compare_with: ["openai/gpt-4o-mini"], stiky: none}
  gpt-4o: {same_as: chatt}
pools:
  own:
    engine: {model: /nowhere/at/all, replicas: two}
    gpu: {type: H300, until: 2026-02-30}
providers:
  openai: {api_key_env: OPENAI_API_KEY}
prices: [nowhere.yaml]
budgets:
  - {scope: "provider:opnai", usd: 500}
"""


def test_ten_faults_are_ten_lines_of_one_run(tmp_path: Path) -> None:
    """Of the schema, between sections, of the files around it, and of YAML itself."""
    path = tmp_path / "ten.yaml"
    path.write_text(TEN_FAULTS)
    found = examine(path, at_us=AT_US)
    assert found.settings is None
    assert [(fault.line, fault.path) for fault in found.faults] == [
        (1, "server.port"),
        (2, "modles"),
        (4, "models.chat.stiky"),
        (4, "models.chat.targets[1]"),
        (5, "models.gpt-4o.same_as"),
        (8, "pools.own.engine.replicas"),
        (9, "pools.own.gpu.type"),
        (9, "pools.own.gpu.until"),
        (12, "prices[0]"),
        (14, "budgets[0].scope"),
    ]
    assert found.count == "10 errors"


def test_load_refuses_contradictions_and_leaves_the_world_to_examine(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(GOOD)
    assert load(path).pools
    found = examine(path, at_us=AT_US)
    assert [fault.path for fault in found.errors] == ["pools.a.engine.model"]
    assert found.settings is None


def test_warnings_refuse_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("models: {a: {targets: [openai/our-own]}}\nproviders: {openai: {}}\n")
    found = examine(path, at_us=AT_US)
    assert {fault.severity for fault in found.faults} == {"warning"}
    assert (found.count, found.errors) == ("2 warnings", ())
    assert found.settings == load(path)


@pytest.mark.parametrize(
    "file",
    [*(ROOT / "deploy").glob("*breakeven.yaml"), ROOT / "gateway" / "demo" / "demo.yaml"],
    ids=str,
)
def test_what_is_shipped_passes_without_a_warning(file: Path) -> None:
    assert examine(file, at_us=AT_US).lines == []


RICH = """
server: {port: 8080, timeouts: {connect_s: 5, total_s: 900, idle_s: 60}}
telemetry: {scrape_s: 0.5, stale_s: 10}
batches: {spill_s: 7200, hand_on_s: 43200}
dashboard: {enabled: true, port: 8501}
models:
  chat:
    targets: ["pool:a", "openai/gpt-4o-mini"]
    compare_with: ["openai/gpt-4o-mini"]
    quality_loss: {"pool:a": 0.0, "openai/gpt-4o-mini": 0.01}
  own: {targets: ["pool:b"], compare_with: ["openai/gpt-4o-mini"], residency: internal_only}
  gpt-4o: {same_as: chat}
pools:
  a:
    engine: {kind: simulated, model: h200-llama-3.1-8b-fp8, endpoints: ["http://10.0.0.5:8000/v1"]}
    gpu: {type: H200, usd_per_hour: 3.50, since: 2026-11-01, until: 2027-11-01}
    upkeep: {timezone: UTC}
  b:
    engine: {kind: simulated, model: h200-llama-3.1-8b-fp8, replicas: 1, port: 8300}
    gpu: {type: H200, usd_per_hour: 3.50, billing: reserved}
providers:
  openai: {api_key_env: OPENAI_API_KEY, kind: openai, batch: true}
policies:
  - name: law
    match: {teams: [legal], times: [{days: [mon, fri], starts: "08:00"}], when: "n == 1"}
    residency: internal_only
  - {name: default2, match: {models: [own]}, otherwise: queue, queue_ms: 500}
  - {name: good, match: {models: [chat], teams: [search]}, max_quality_loss: 0.05}
  - {name: watch, match: {teams: [hr]}, shadow: true}
  - {name: last, slo: {ttft_ms: 500}}
budgets:
  - {scope: "team:search", usd: 500, period: month, timezone: Europe/Berlin}
limits:
  - {scope: "team:search", requests_per_minute: 60}
"""


def _leaves(value, place=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        if isinstance(inner, dict | list) and inner:
            yield (*place, key)
            yield from _leaves(inner, (*place, key))
        else:
            yield (*place, key)


def _replaced(document, place, make):
    changed = copy.deepcopy(document)
    here = changed
    for part in place[:-1]:
        here = here[part]
    here[place[-1]] = make(here[place[-1]])
    return yaml.safe_dump(changed, sort_keys=False)


@pytest.fixture(scope="module")
def world() -> ConfigFacts:
    facts = gather_facts(parse(RICH, name="rich"), AT_US)
    return dataclasses.replace(facts, wrong_paths={})


SLIPS = {
    "a section in its place": lambda value: {"?": 1},
    "a slip of the pen": lambda value: f"{value}x" if not isinstance(value, dict | list) else 7,
    "another number": lambda value: 10**9 if isinstance(value, int | float) else False,
}


@pytest.mark.parametrize("among", [len(SLIPS), pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("slip", SLIPS)
def test_no_warning_follows_from_an_error(slip, among, world, tmp_path, monkeypatch) -> None:
    """Each setting of a file without warnings is spoiled, in one of the ways, or in all."""
    monkeypatch.setattr("gateway.config.examination.gather_facts", lambda *_, **__: world)
    path = tmp_path / "file.yaml"
    path.write_text(RICH)
    assert examine(path, at_us=AT_US).lines == []
    document = yaml.safe_load(RICH)
    spoiled, followed = 0, []
    for place in [*_leaves(document)][[*SLIPS].index(slip) % among :: among]:
        path.write_text(_replaced(document, place, SLIPS[slip]))
        found = examine(path, at_us=AT_US)
        if found.errors:
            spoiled += 1
            followed += [
                (place, fault.path)
                for fault in found.faults
                if fault.severity == "warning" and fault.place != place
            ]
    assert followed == []
    assert spoiled > 20 // among


def test_one_slip_hides_no_warning_of_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("""
models: {a: {targets: [openai/our-own], compare_with: [openai/our-own]}}
providers: {openai: {api_key_env: A, features: [tolls]}}
policies: [{name: all}, {name: never}, {name: x, match: {times: [{days: [mond]}]}}]
""")
    found = examine(path, at_us=AT_US)
    assert [fault.path for fault in found.errors] == [
        "providers.openai.features[0]", "policies[2].match.times[0].days[0]",
    ]  # fmt: skip
    warned = [fault.path for fault in found.faults if fault.severity == "warning"]
    assert "policies[1]" in warned
    assert "models.a.compare_with[0]" in warned
