"""Facts from the machine: price files, model directories, key files; nothing is made."""

import json
from datetime import date
from pathlib import Path

import pytest

from backends.engine import tuned
from gateway.config.schema import Settings
from gateway.config.surroundings import gather_facts
from ledger.database import make_engine, migrate
from ledger.fleet.samples import add_capacity
from ledger.identity.keys import KeySpec, create_key

AT_US = 1_795_000_000_000_000  # 2026-11-18
PRICES = (
    "prices: {acme/best: {usd_per_million: {input: 1, output: 2}}}\naliases: {a/b: acme/best}\n"
)


def facts(**given):
    return gather_facts(Settings.model_validate(given), AT_US)


def engine(**changes):
    described = {"kind": "vllm", "model": "m", "replicas": 1, **changes}
    return {"pools": {"a": {"engine": described, "gpu": {"type": "CPU"}}}}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_the_bundled_book_and_the_day_are_facts():
    found = facts()
    assert found.today == date(2026, 11, 18)
    assert found.prices is not None
    assert found.prices.find("openai/gpt-4o-mini", AT_US) is not None
    assert found.wrong_paths == {}


def test_a_price_file_is_applied(tmp_path):
    (tmp_path / "own.yaml").write_text(PRICES)
    found = facts(prices=[str(tmp_path / "own.yaml")])
    assert found.wrong_paths == {}
    assert found.prices is not None
    assert found.prices.find("acme/best", AT_US) is not None
    assert found.prices.find("a/b", AT_US) is not None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"\xff", "utf-8"),
        (b"a: [", "not YAML"),
        (b"wat: 1", "unknown key wat"),
        (b"prices: {x: {usd_per_million: {input: 1, output: 1}}}", "must be `provider/model`"),
        (b"prices: {a/x: {usd_per_million: {input: -1, output: 1}}}", "never negative"),
    ],
)
def test_every_unusable_price_file_is_told(tmp_path, content, said):
    (tmp_path / "good.yaml").write_text(PRICES)
    bad = tmp_path / "bad.yaml"
    if content is not None:
        bad.write_bytes(content)
    found = facts(prices=[str(bad), str(tmp_path / "good.yaml"), str(tmp_path / "gone.yaml")])
    assert found.prices is None
    assert set(found.wrong_paths) == {("prices", 0), ("prices", 2)}
    assert said in found.wrong_paths["prices", 0]
    assert "\n" not in found.wrong_paths["prices", 0]


def test_one_file_named_twice_is_told(tmp_path):
    (tmp_path / "own.yaml").write_text(PRICES)
    found = facts(prices=[str(tmp_path / "own.yaml")] * 2)
    assert "stated twice" in found.wrong_paths["prices",]


def test_a_model_directory_is_looked_at(model, tmp_path):
    assert facts(**engine(model=str(model))).wrong_paths == {}
    place = ("pools", "a", "engine", "model")
    for path, said in (
        (tmp_path / "nowhere", "there is no directory"),
        (model / "config.json", "is a file"),
        (tmp_path, "no config.json"),
    ):
        found = facts(**engine(model=str(path))).wrong_paths
        assert list(found) == [place]
        assert said in found[place]


@pytest.mark.parametrize(
    "changes",
    [{"kind": "simulated", "model": "profile"}, {"replicas": 0, "endpoints": ["http://h/v1"]}],
)
def test_what_is_not_started_here_needs_no_directory(changes):
    assert facts(**engine(**changes)).wrong_paths == {}


def test_an_environment_is_looked_at(model, tmp_path):
    given = engine(model=str(model), environment=str(tmp_path / "engine"))
    assert "breakeven engine install" in str(facts(**given).wrong_paths)
    (tmp_path / "engine" / "bin").mkdir(parents=True)
    assert facts(**given).wrong_paths == {}


def test_a_profile_is_of_the_model_that_it_is_for(model, tmp_path):
    """Flags that were found for other weights are a fault, before anything starts."""
    profile = tmp_path / "profile.json"
    given = engine(model=str(model), profile=str(profile))
    assert "breakeven engine tune" in str(facts(**given).wrong_paths)
    tuned.write(profile, ["--max-num-seqs", "512"], model, {})
    assert facts(**given).wrong_paths == {}
    (model / "config.json").write_text('{"model_type": "other"}')
    assert "was found for another model" in str(facts(**given).wrong_paths)
    profile.write_text('{"breakeven_profile": 1, "flags": []}')
    assert facts(**given).wrong_paths == {}, "a person's own says of no model"


def test_a_key_file_and_the_state_directory_are_looked_at(tmp_path):
    key = tmp_path / "key"
    given = {"providers": {"x": {"api_key_file": str(key)}}, "state_dir": str(tmp_path / "state")}
    assert list(facts(**given).wrong_paths) == [("providers", "x", "api_key_file")]
    key.write_text("secret")
    assert facts(**given).wrong_paths == {}
    assert not (tmp_path / "state").exists()
    (tmp_path / "state").write_text("a file")
    assert list(facts(**given).wrong_paths) == [("state_dir",)]


def test_an_adapter_that_is_not_all_there_is_a_fault(tmp_path, model):
    folder = tmp_path / "sql"
    folder.mkdir()
    config = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").touch()
    found = facts(**engine(model=str(model), adapters={"sql": str(folder)})).wrong_paths
    (place,) = [place for place in found if "adapters" in place]
    assert place == ("pools", "a", "engine", "adapters", "sql")
    assert "adapter_model.safetensors is not a safetensors file" in found[place]


def test_names_of_keys_are_facts_where_the_ledger_can_be_read(tmp_path):
    assert facts(state_dir=str(tmp_path)).names == {}
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    migrate(url)
    engine = make_engine(url)
    with engine.begin() as connection:
        create_key(connection, KeySpec(name="k", team="search"), pepper=b"p" * 32, now_us=1)
    engine.dispose()
    assert facts(state_dir=str(tmp_path)).names["team"] == {"search"}
    elsewhere = {"state_dir": str(tmp_path / "x"), "ledger": {"url_env": "LEDGER"}}
    settings = Settings.model_validate(elsewhere)
    assert gather_facts(settings, AT_US, {"LEDGER": url}).names["team"] == {"search"}
    for other in ({}, {"LEDGER": "nonsense"}, {"LEDGER": f"sqlite:///{tmp_path / 'no.db'}"}):
        assert gather_facts(settings, AT_US, other).names == {}


def test_steps_of_pools_are_facts_where_the_ledger_knows_them(tmp_path):
    pools = {"a": {"engine": {"model": "m"}, "gpu": {"type": "H100", "usd_per_hour": 1}}}
    given = {"state_dir": str(tmp_path), "pools": pools}
    assert facts(**given).steps == {}
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    migrate(url)
    engine = make_engine(url)
    add_capacity(
        engine,
        {
            "at_us": 1, "pool": "a", "engine": "pool:a/0", "kv_capacity_tokens": 9,
            "step_a_s": 0.01, "step_b_s": 0.0, "step_c_s": 0.0, "step_d_s": 1e-5,
            "step_t0_s": 0.0, "source": "fitted",
        },
    )  # fmt: skip
    engine.dispose()
    assert facts(**given).steps["a"].step.a_s == 0.01


def test_hosts_are_looked_up_for_whoever_would_serve_here(monkeypatch):
    answers = {"llm.example.com": ("10.0.0.9",)}
    monkeypatch.setattr("gateway.config.surroundings.resolve_hosts", lambda hosts: answers)
    given = {"providers": {"p": {"base_url": "https://llm.example.com/v1"}}}
    assert facts(**given).addresses == {}
    assert gather_facts(Settings.model_validate(given), AT_US, {}).addresses == answers
