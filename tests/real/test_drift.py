"""Live traffic on real vLLM, asked again of the shipped weights: int8 is well, a broken one drifts.

One `serve` with three engines. The team `search` agreed, `other` did not; the account `quality`
pays for what is asked again.
"""

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from backends.engine import shipped
from gateway.cli import app
from gateway.drift.sampling import LEAST
from ledger.driftnotes import read_drift

ROOT = Path(__file__).parents[2]
ASKED = ("os.walk", "json.dumps", "len", "shutil.copy", "textwrap.wrap", "str.split", "re.match",
         "itertools.chain", "dict.get", "list.sort", "open", "zip", "enumerate")  # fmt: skip
SECRET = "zebra-crossing-91"
pytestmark = [pytest.mark.real, pytest.mark.part("vllm"), pytest.mark.long]


@pytest.fixture(scope="module")
def gateway(serve, engine_python: Path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantized")
    quantize = [str(engine_python), "-m", "backends.engine.training.quantize"]
    for method in ("int8", "broken"):
        words = [*quantize, str(shipped.DIRECTORY), folder / method, "--method", method]
        subprocess.run(words, cwd=ROOT, check=True)
    models, pools = {}, {}
    compare = {"compare_with": ["openai/gpt-4o-mini"]}
    for name, model in (("base", shipped.DIRECTORY), ("int8", folder / "int8"),
                        ("broken", folder / "broken")):  # fmt: skip
        engine = {"model": str(model), "replicas": 1, "port": 0,
                  "environment": str(engine_python.parent.parent),
                  "flags": ["--max-model-len", "1024"]}  # fmt: skip
        gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1, "machine": "here"}
        pools[name] = {"engine": engine, "gpu": gpu}
        models[name] = {"targets": [f"pool:{name}"], **compare}
        if name != "base":
            pools[name]["sampling"] = {
                "teams": ["search"], "model": name, "baseline": "base", "share": 1.0,
                "key_env": "QUALITY_KEY", "per_hour": 1000, "window": 40, "tokens": 24,
            }  # fmt: skip
    config = {"state_dir": str(folder / "state"), "models": models, "pools": pools}
    file = folder / "breakeven.yaml"
    file.write_text(json.dumps(config))
    asked = [
        "keys",
        "create",
        "--name",
        "quality",
        "--team",
        "quality",
        "--json",
        "--config",
        str(file),
    ]
    made = CliRunner().invoke(app, asked)
    assert made.exit_code == 0, made.output
    running = serve(config, {"QUALITY_KEY": json.loads(made.stdout)["token"]})
    running.state = folder / "state"
    return running


def ask(gateway, token: str, model: str, content: str) -> httpx.Response:
    body = {"model": model, "temperature": 0, "max_tokens": 8,
            "messages": [{"role": "user", "content": content}]}  # fmt: skip
    headers = {"authorization": f"Bearer {token}"}
    url = gateway.base_url + "/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=120, trust_env=False)


def test_a_broken_quantization_drifts_and_an_honest_one_does_not(gateway):
    search, other = gateway.key(team="search"), gateway.key(team="other")
    for model in ("base", "int8", "broken"):
        gateway.until(lambda model=model: ask(gateway, other, model, "Hello").is_success, 600)
    run_dir = gateway.state / "run"
    assert all(note.compared == 0 for note in read_drift(run_dir).values())  # `other` did not agree
    questions = [
        words.format(one) for words in ("What does {} do?", "Explain {}.") for one in ASKED
    ]
    for question in questions:
        for model in ("int8", "broken"):
            asked = ask(gateway, search, model, f"{question} {SECRET}")
            assert asked.is_success, asked.text
    gateway.until(
        lambda: all(
            note.compared + note.failed >= len(questions) for note in read_drift(run_dir).values()
        ),
        600,
    )
    notes = read_drift(run_dir)
    told = {name: (note.differ, note.low, note.high, note.kl) for name, note in notes.items()}
    print(told)  # a figure for whoever looks
    assert all(note.in_window >= LEAST and not note.failed for note in notes.values()), notes
    assert notes["broken"].drifts, told
    assert not notes["int8"].drifts, told
    counted = httpx.get(gateway.root + "/metrics", trust_env=False).text
    assert 'breakeven_drift{pool="broken"} 1.0' in counted
    assert 'breakeven_drift{pool="int8"} 0.0' in counted
    booked = gateway.rows("select team_id, count(*) as n from attempts group by team_id")
    teams = {row["team_id"]: row["n"] for row in booked}
    assert teams["quality"] >= 4 * len(questions)
    kept = [path for path in gateway.state.rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
