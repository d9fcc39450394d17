"""`engine bench` beside vLLM's own load generator, on the same server one after the other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

ROOT = Path(__file__).parents[2]
LIMIT_S = 240
AGREE = 0.05
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def url():
    """Simulated: it keeps its pace on a busy machine, where a real one on a processor cannot."""
    command = ["-m", "backends.simulator.server", "--profile", "rtx4090-llama-3.1-8b",
               "--model", "sim", "--port", "0"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    found = re.search(r"http://\S+", process.stdout.readline())
    yield found[0]
    process.terminate()
    process.wait(timeout=30)
    process.stdout.close()


def ran(command: list[object], **environ: str) -> None:
    words = [str(word) for word in command]
    told = {
        "PATH": os.environ["PATH"],
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        **environ,
    }
    answer = subprocess.run(
        words, cwd=ROOT, env=told, check=False, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]


def test_both_say_the_same_of_one_server(url, tiny_engine, engine_python: Path, tmp_path: Path):
    """Output tokens per second and median TPOT within 5 %; at another load they are not."""
    words = {
        "backend": "openai", "base-url": url.removesuffix("/v1"), "endpoint": "/v1/completions",
        "model": "sim", "tokenizer": tiny_engine.directory, "dataset-name": "random",
        "random-input-len": 64, "random-output-len": 64, "num-prompts": 48, "max-concurrency": 4,
        "result-dir": tmp_path, "result-filename": "theirs.json",
    }  # fmt: skip
    flags = [word for name, value in words.items() for word in (f"--{name}", value)]
    program = [engine_python.with_name("vllm"), "bench", "serve", "--ignore-eos", "--save-result"]
    ran([*program, *flags], HOME=str(tmp_path))
    theirs = json.loads((tmp_path / "theirs.json").read_text())
    out = tmp_path / "ours.json"
    ours = [url, "--completions", "--concurrency", "4,2", "--requests", "48",
            "--prompt-tokens", "64", "--output-tokens", "64", "--out", str(out)]  # fmt: skip
    answer = CliRunner().invoke(app, ["engine", "bench", *ours])
    assert answer.exit_code == 0, answer.output
    alike, other = (run["figures"] for run in json.loads(out.read_text())["runs"])
    assert theirs["completed"] == alike["requests"] == 48
    rate = theirs["output_throughput"]
    assert alike["whole"]["output_tokens"] == pytest.approx(rate, rel=AGREE)
    tpot_s = theirs["median_tpot_ms"] / 1e3
    assert alike["tpot_s"]["p50"]["value"] == pytest.approx(tpot_s, rel=AGREE)
    assert other["whole"]["output_tokens"] != pytest.approx(rate, rel=AGREE)
