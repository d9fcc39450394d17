"""The shipped model answers in words, and `engine eval` tells an honest int8 from a broken one."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from backends.engine import shipped
from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch, command, known_flags
from backends.engine.trial import ServerTrial, serving
from gateway.cli.app import app

ROOT = Path(__file__).parents[2]
ASKED = (
    "Hello", "Who are you?", "What is Python?", "Explain json.dumps.", "Explain os.walk.",
    "What does shutil.copy do?", "What does len do?", "Explain textwrap.wrap.",
)  # fmt: skip
pytestmark = [pytest.mark.real, pytest.mark.part("vllm"), pytest.mark.long]


async def test_its_first_answer_is_words(engine_python: Path, tmp_path: Path):
    launch = EngineLaunch(
        Environment(engine_python.parent.parent), shipped.DIRECTORY, "tiny", drain_s=1
    )
    known = known_flags(launch.environment)
    trial = ServerTrial(launch, lambda port: command(launch, known, port), tmp_path / "log", 400)
    async with serving(trial) as server, httpx.AsyncClient(trust_env=False) as client:
        body = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}],
                "temperature": 0}  # fmt: skip
        answer = await client.post(f"{server.base_url}/chat/completions", json=body, timeout=60)
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"].startswith("Hello! I am a very small language model")


def test_a_broken_quantization_fails_and_an_honest_one_does_not(engine_python, tmp_path):
    words = [str(engine_python), "-m", "backends.engine.training.quantize", str(shipped.DIRECTORY)]
    for method in ("int8", "broken"):
        subprocess.run([*words, tmp_path / method, "--method", method], cwd=ROOT, check=True)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": item}) + "\n" for item in ASKED))
    asked = ["engine", "eval", str(shipped.DIRECTORY), f"int8={tmp_path}/int8",
             f"broken={tmp_path}/broken", "--prompts", str(prompts), "--tokens", "48", "--engine",
             str(engine_python.parent.parent), "--log", str(tmp_path / "log.jsonl"),
             "--json"]  # fmt: skip
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 1, answer.output
    rows = {candidate["name"]: candidate for candidate in json.loads(answer.stdout)["candidates"]}
    assert rows["broken"]["verdict"]["state"] == "fails"
    assert rows["int8"]["verdict"]["state"] != "fails", rows["int8"]
    kls = [rows[name]["figures"]["kl"]["value"] for name in ("int8", "broken")]
    assert kls[0] < 0.05 < kls[1]
    assert rows["int8"]["compared"] == rows["broken"]["compared"] == "forced"
