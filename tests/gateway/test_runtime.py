"""What `serve` resolves once: seats, ports, rows, the same after a trip through the file."""

from pathlib import Path

import pytest

from backends.simulator.profiles import PROFILES
from gateway.config.settings import EngineSection, parse
from gateway.config.step_promises import PoolSteps
from gateway.runtime import Runtime, RuntimePorts, batch_limits, resolve_runtime, tuned_flags

TEXT = """
models:
  chat: {targets: ["pool:a", "openai/x"], compare_with: ["openai/x"]}
  other: {targets: ["openai/b", "openai/x"]}
pools:
  a:
    engine: {model: m, replicas: 2, endpoints: ["http://10.0.0.5:8000/v1/"]}
    gpu: {type: H200}
providers:
  openai: {base_url: "http://10.0.0.9/v1"}
  standin: {start: true, simulated: true}
"""


def resolved(tmp_path: Path) -> Runtime:
    settings = parse(TEXT, name="t").model_copy(update={"state_dir": str(tmp_path)})
    ports = RuntimePorts({"pool:a/0": 8100, "pool:a/1": 8101}, {"standin": 9000})
    return resolve_runtime(settings, ports, ledger_url="sqlite://", policy_version="v")


def test_only_engines_that_already_run_have_a_named_dialect(tmp_path: Path) -> None:
    named = TEXT.replace("model: m,", "model: m, metrics: sglang, kv_capacity_tokens: 4096,")
    settings = parse(named, name="t").model_copy(update={"state_dir": str(tmp_path)})
    ports = RuntimePorts({"pool:a/0": 8100, "pool:a/1": 8101}, {"standin": 9000})
    seats = resolve_runtime(settings, ports, ledger_url="sqlite://", policy_version="v").engines
    assert [seat.dialect for seat in seats] == [None, None, "sglang"]
    assert {seat.kv_capacity_tokens for seat in seats} == {4096}
    assert {seat.dialect for seat in resolved(tmp_path).engines} == {None}


def test_managed_replicas_take_the_low_seats(tmp_path: Path) -> None:
    seats = resolved(tmp_path).engines
    assert [(seat.name, seat.base_url, seat.managed) for seat in seats] == [
        ("pool:a/0", "http://127.0.0.1:8100/v1", True),
        ("pool:a/1", "http://127.0.0.1:8101/v1", True),
        ("pool:a/2", "http://10.0.0.5:8000/v1", False),
    ]
    assert {seat.served_name for seat in seats} == {"a"}


def test_every_api_has_a_row_and_every_provider_one_for_pass_through(tmp_path: Path) -> None:
    runtime = resolved(tmp_path)
    assert runtime.apis == ("openai/b", "openai/x", "openai/*", "standin/*")
    assert runtime.providers == {
        "openai": "http://10.0.0.9/v1", "standin": "http://127.0.0.1:9000/v1",
    }  # fmt: skip
    assert runtime.layout.engines == ("pool:a/0", "pool:a/1", "pool:a/2")


def test_it_is_read_as_it_was_written_and_by_its_owner_only(tmp_path: Path) -> None:
    runtime = resolved(tmp_path)
    runtime.run_dir.mkdir()
    path = runtime.save()
    assert Runtime.load(path) == runtime
    assert path.stat().st_mode & 0o077 == 0
    assert runtime.journal_dir == tmp_path / "journal"


@pytest.mark.parametrize(
    ("engine", "limits"),
    [
        ({"model": "m"}, (256, 2048)),
        ({"model": "m", "max_num_seqs": 8}, (8, 2048)),
        ({"kind": "simulated", "model": "rtx4090-llama-3.1-8b"}, (128, 2048)),
        ({"kind": "simulated", "model": "unknown"}, (256, 2048)),
    ],
)
def test_batch_limits_are_the_configured_ones_or_the_profiles(engine: dict, limits) -> None:
    assert "rtx4090-llama-3.1-8b" in PROFILES
    assert batch_limits(EngineSection(**engine)) == limits


@pytest.mark.parametrize(
    ("changes", "flags", "limits"),
    [
        ({}, ("--max-num-seqs", "512", "--kv-cache-dtype", "fp8"), (512, 2048)),
        ({"max_num_seqs": 8}, ("--kv-cache-dtype", "fp8"), (8, 2048)),
        ({"flags": ("--kv-cache-dtype=auto",)}, ("--max-num-seqs", "512"), (512, 2048)),
        ({"profile": None}, (), (256, 2048)),
    ],
)
def test_a_profile_gives_flags_and_limits_that_the_settings_overrule(
    tmp_path: Path, changes: dict, flags, limits
) -> None:
    path = tmp_path / "profile.json"
    path.write_text(
        '{"breakeven_profile": 1, "flags": ["--max-num-seqs", "512", "--kv-cache-dtype", "fp8"]}'
    )
    engine = EngineSection(**{"model": "m", "replicas": 1, "profile": str(path), **changes})
    assert tuned_flags(engine) == flags
    assert batch_limits(engine, tuned_flags(engine)) == limits


def test_the_ledgers_password_is_in_no_representation(tmp_path: Path) -> None:
    url = "postgresql+psycopg://ledger:s3cret@db.example/breakeven"
    settings = parse(f"state_dir: {tmp_path}", name="t")
    made = resolve_runtime(settings, RuntimePorts({}, {}), ledger_url=url, policy_version="v")
    assert made.ledger_url == url
    assert "s3cret" not in f"{made!r} {made}"


def test_a_row_for_other_hosts_is_there_where_some_are_named(tmp_path: Path) -> None:
    assert not resolved(tmp_path).layout.peers
    named = TEXT + "peers: {listen: '0.0.0.0:1', hosts: ['b:1'], secret_env: S}"
    ports = RuntimePorts({"pool:a/0": 8100, "pool:a/1": 8101}, {"standin": 9000})
    settings = parse(named, name="t")
    assert resolve_runtime(settings, ports, ledger_url="sqlite://", policy_version="v").layout.peers


@pytest.mark.parametrize(
    ("engine", "budget"),
    [
        ("kind: simulated, model: h100-llama-3.1-8b-fp8, replicas: 1", 960),
        (
            "kind: simulated, model: h100-llama-3.1-8b-fp8, replicas: 1, prefill_budget_tokens: 4",
            4,
        ),
        ("model: /m, replicas: 1", 960),
        ("model: /m, endpoints: ['http://10.0.0.5:8000/v1']", 2048),
    ],
)
def test_engines_are_started_with_a_step_that_keeps_what_is_promised(tmp_path, engine, budget):
    text = f"""
models: {{m: {{targets: ["pool:a"], compare_with: ["openai/x"]}}}}
pools: {{a: {{engine: {{{engine}}}, gpu: {{type: H100}}}}}}
policies: [{{name: p, slo: {{tpot_ms: 50}}}}]
"""
    settings = parse(text, name="t").model_copy(update={"state_dir": str(tmp_path)})
    shape = PROFILES["h100-llama-3.1-8b-fp8"].shape
    (seat,) = resolve_runtime(
        settings, RuntimePorts({"pool:a/0": 8100}, {}), ledger_url="sqlite://", policy_version="v",
        measured={"a": PoolSteps.of(shape)},
    ).engines  # fmt: skip
    assert seat.prefill_budget_tokens == budget
