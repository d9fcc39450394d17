"""Two real engines of one host behind one gateway: one answers worse, drifts, crashes, is drained.

`own` serves a quantization that was broken on purpose, `base` the shipped model; a stand-in API is
there for what is sent away.
"""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from backends.engine import shipped
from gateway.cli.app import app
from gateway.telemetry.drift.sampling import LEAST
from ledger.fleet.driftnotes import read_drift

ROOT = Path(__file__).parents[2]
OWN, BASE = "pool:own/0", "pool:base/0"
pytestmark = [pytest.mark.real, pytest.mark.part("vllm"), pytest.mark.long]


@pytest.fixture(scope="module")
def gateway(serve, engine_python: Path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    made = [engine_python, "-m", "backends.engine.training.quantize", shipped.DIRECTORY,
            folder / "broken", "--method", "broken"]  # fmt: skip
    subprocess.run([str(word) for word in made], cwd=ROOT, check=True)
    engine = {"kind": "vllm", "replicas": 1, "port": 0, "flags": ["--max-model-len", "512"],
              "environment": str(engine_python.parent.parent)}  # fmt: skip
    gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1, "machine": "here"}
    rule = {"teams": ["search"], "model": "own", "baseline": "base", "share": 1.0,
            "key_env": "QUALITY_KEY", "per_hour": 1000, "tokens": 16}  # fmt: skip
    priced = {"compare_with": ["openai/gpt-4o-mini"]}
    config = {
        "state_dir": str(folder / "state"),
        "models": {"own": {"targets": ["pool:own"], **priced},
                   "base": {"targets": ["pool:base"], **priced},
                   "any": {"targets": ["pool:base", "api/any"], **priced}},
        "pools": {"own": {"engine": engine | {"model": str(folder / "broken")}, "gpu": gpu,
                          "sampling": rule},
                  "base": {"engine": engine | {"model": str(shipped.DIRECTORY)}, "gpu": gpu}},
        "providers": {"api": {"simulated": True, "start": True, "prices_as": "openai/gpt-4o-mini"}},
    }  # fmt: skip
    (folder / "breakeven.yaml").write_text(json.dumps(config))
    asked = ["keys", "create", "--name", "quality", "--team", "quality", "--json"]
    account = CliRunner().invoke(app, [*asked, "--config", str(folder / "breakeven.yaml")])
    assert account.exit_code == 0, account.output
    running = serve(config, {"QUALITY_KEY": json.loads(account.stdout)["token"]})
    running.state = folder / "state"
    running.headers = {"authorization": f"Bearer {running.key(team='search')}"}
    for model in ("own", "base"):
        running.until(lambda model=model: ask(running, model).status_code == 200, 600)
    return running


def ask(gateway, model: str, text: str = "What is Python?") -> httpx.Response:
    body = {"model": model, "max_tokens": 8, "messages": [{"role": "user", "content": text}]}
    url = gateway.base_url + "/chat/completions"
    return httpx.post(url, json=body, headers=gateway.headers, timeout=120, trust_env=False)


def backend(gateway, model: str) -> str:
    answer = ask(gateway, model)
    return answer.headers["x-breakeven-backend"] if answer.is_success else ""


def breakeven(gateway, *words: str) -> str:
    answer = CliRunner().invoke(app, [*words, "--config", str(gateway.config)])
    assert answer.exit_code == 0, answer.output
    return answer.output


def lives(gateway) -> dict[str, int]:
    told = json.loads(breakeven(gateway, "engine", "status", "--json"))
    return {line["engine"]: line["life"] for line in told if line["state"] == "healthy"}


def test_an_engine_that_answers_otherwise_than_its_baseline_drifts(gateway):
    """What its rule `BreakevenModelDrifts` looks at, asked of live traffic."""
    for number in range(LEAST + 4):
        assert ask(gateway, "own", f"Explain number {number} of Python.").is_success

    def drifts() -> bool:
        return read_drift(gateway.state / "run")["own"].drifts

    gateway.until(drifts, 300)
    note = read_drift(gateway.state / "run")["own"]
    assert note.low > note.limit == 0.05
    metrics = httpx.get(gateway.root + "/metrics", trust_env=False).text
    assert 'breakeven_drift{pool="own"} 1.0' in metrics
    assert 'breakeven_drift_limit_ratio{pool="own"} 0.05' in metrics


def test_one_engine_crashes_and_the_other_serves_on(gateway):
    before = lives(gateway)
    recorded = (gateway.state / "logs" / "pool-own-0.log.tree").read_text().splitlines()
    _, guard, engine, *_ = recorded  # the boot, then processes, parents before children
    answers: list[int] = []
    over = threading.Event()

    def ask_on() -> None:
        while not over.is_set():
            answers.append(ask(gateway, "base").status_code)

    asking = threading.Thread(target=ask_on)
    asking.start()
    os.kill(int(engine.split()[0]), signal.SIGKILL)
    try:
        gateway.until(lambda: lives(gateway).get(OWN) == before[OWN] + 1, 300)
    finally:
        over.set()
        asking.join()
    assert len(answers) > 10
    assert set(answers) == {200}
    assert lives(gateway)[BASE] == before[BASE]
    assert not Path(f"/proc/{guard.split()[0]}").exists()
    gateway.until(lambda: backend(gateway, "own") == OWN, 60)
    assert "killed" in (gateway.folder / "serve.out").read_text().casefold()


def test_verbs_hold_for_the_engine_that_they_name(gateway):
    breakeven(gateway, "engine", "drain", OWN)
    refused = ask(gateway, "own")
    assert refused.status_code in (429, 503), refused.text
    assert backend(gateway, "base") == BASE
    breakeven(gateway, "engine", "resume", OWN)
    gateway.until(lambda: backend(gateway, "own") == OWN, 30)
    before = lives(gateway)
    breakeven(gateway, "engine", "restart", BASE)
    after = lives(gateway)
    assert (after[OWN], after[BASE]) == (before[OWN], before[BASE] + 1)
    for name in (OWN, BASE):
        assert "GET /metrics" in breakeven(gateway, "engine", "logs", name, "-n", "200")


def test_what_operators_hold_over_routes_holds_for_real_engines(gateway):
    assert backend(gateway, "any") == BASE
    breakeven(gateway, "target", "disable", "pool:base", "--for", "30m")
    gateway.until(lambda: backend(gateway, "any") == "api/any", 30)
    breakeven(gateway, "target", "enable", "pool:base")
    gateway.until(lambda: backend(gateway, "any") == BASE, 30)
    breakeven(gateway, "route", "force", "api", "--for", "30m", "--model", "any")
    gateway.until(lambda: backend(gateway, "any") == "api/any", 30)
    assert backend(gateway, "base") == BASE
    breakeven(gateway, "route", "force", "own", "--for", "30m", "--model", "any")
    gateway.until(lambda: backend(gateway, "any") == BASE, 30)
    breakeven(gateway, "route", "release", "--model", "any")
