"""Drawn in a worker, asked again through the gateway, booked, shown: with simulated engines."""

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from ledger.fleet.driftnotes import read_drift

SECRET = "zebra-crossing-91"
ASKED = 6
pytestmark = pytest.mark.long  # two gateways' starts


@pytest.fixture(scope="module")
def gateway(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    engine = {"kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "replicas": 1, "port": 0}
    pool = {"engine": engine, "gpu": {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1}}
    rule = {"teams": ["search"], "model": "own", "baseline": "base", "share": 1.0,
            "key_env": "QUALITY_KEY", "per_hour": 1000, "tokens": 8}  # fmt: skip
    model = {"compare_with": ["openai/gpt-4o-mini"]}
    config = {
        "state_dir": str(folder / "state"),
        "models": {"own": {"targets": ["pool:own"]} | model,
                   "base": {"targets": ["pool:base"]} | model},
        "pools": {"own": pool | {"sampling": rule}, "base": pool},
    }  # fmt: skip
    (folder / "breakeven.yaml").write_text(json.dumps(config))
    asked = ["keys", "create", "--name", "quality", "--team", "quality", "--json"]
    made = CliRunner().invoke(app, [*asked, "--config", str(folder / "breakeven.yaml")])
    assert made.exit_code == 0, made.output
    running = serve(config, {"QUALITY_KEY": json.loads(made.stdout)["token"]})
    running.state = folder / "state"
    return running


def test_what_is_drawn_is_asked_again_and_booked_on_its_account(gateway):
    run_dir: Path = gateway.state / "run"
    gateway.until((run_dir / "drift.sock").exists, 60)
    for team in ("other", "search"):
        headers = {"authorization": f"Bearer {gateway.key(team=team)}"}
        for number in range(ASKED):
            message = {"role": "user", "content": f"{SECRET} of {team} {number}"}
            body = {"model": "own", "messages": [message], "max_tokens": 8}
            url = gateway.base_url + "/chat/completions"
            answer = httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60)
            assert answer.is_success, answer.text

    def tried() -> bool:
        note = read_drift(run_dir)["own"]
        return note.compared + note.failed + note.let_go >= ASKED

    gateway.until(tried, 120)
    note = read_drift(run_dir)["own"]
    assert (note.compared, note.failed, note.let_go) == (ASKED, 0, 0)  # none of `other`
    count = "select count(*) as n from attempts where team_id = 'quality'"
    gateway.until(lambda: gateway.rows(count)[0]["n"] >= 2 * ASKED, 60)
    metrics = httpx.get(gateway.root + "/metrics", trust_env=False).text
    assert f'breakeven_drift_questions_total{{outcome="compared",pool="own"}} {ASKED}.0' in metrics
    kept = [path for path in gateway.state.rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
    told = run_dir / "drift.json"
    assert told in kept  # the control: there were files to look into
