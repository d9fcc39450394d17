"""vLLM's own load generator runs through the gateway: what it counted is what was booked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

APPLIED_LIMIT_S = 30
PROGRAM_LIMIT_S = 300
REQUESTS = 40
OUTPUT_TOKENS = 12
SUMS = (
    "SELECT count(*) AS n, sum(input_tokens + cached_tokens) AS input,"
    " sum(output_tokens) AS output FROM attempts WHERE team_id = :team AND status = 'finished'"
)
pytestmark = pytest.mark.long


def engine(**changes: object) -> dict:
    return {"served_name": "tiny", "kinds": ["chat", "completion"], **changes}


@pytest.fixture(scope="module")
def gateway(serve, tiny_engine):
    simulated = {"kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "replicas": 1, "port": 0}
    pools = {
        "real": engine(endpoints=[tiny_engine.base_url]),
        "simulated": engine(**simulated),
    }
    gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1}
    found = serve(
        {
            "models": {
                name: {"targets": [f"pool:{name}"], "compare_with": ["openai/gpt-4o-mini"]}
                for name in pools
            },
            "pools": {name: {"engine": one, "gpu": gpu} for name, one in pools.items()},
        }
    )
    found.until(lambda: found.rows("SELECT 1 FROM engine_samples LIMIT 1"), 60)
    return found


@pytest.mark.parametrize("target", ["simulated", "real"])
@pytest.mark.parametrize("backend", ["openai-chat", "openai"])
def test_vllm_bench_serve(
    gateway, tiny_engine, engine_python: Path, tmp_path: Path, backend: str, target: str
) -> None:
    team = f"bench-{target}-{backend}"
    path = "/v1/chat/completions" if backend == "openai-chat" else "/v1/completions"
    words = {
        "backend": backend, "base-url": gateway.root, "endpoint": path, "model": target,
        "tokenizer": tiny_engine.directory, "dataset-name": "random", "random-input-len": 24,
        "random-output-len": OUTPUT_TOKENS, "num-prompts": REQUESTS, "max-concurrency": 4,
        "result-dir": tmp_path, "result-filename": "found.json",
    }  # fmt: skip
    flags = [word for name, value in words.items() for word in (f"--{name}", str(value))]
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENAI_API_KEY": gateway.key(team=team),
        "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
    }  # fmt: skip
    program = engine_python.with_name("vllm")
    answer = subprocess.run(
        [program, "bench", "serve", *flags, "--ignore-eos", "--save-result"],
        cwd=tmp_path, env=environ, check=False, capture_output=True, text=True,
        timeout=PROGRAM_LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr[-4000:]
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (found["completed"], found["failed"]) == (REQUESTS, 0)
    assert found["total_output_tokens"] == REQUESTS * OUTPUT_TOKENS
    expected = {
        "n": found["completed"],
        "input": found["total_input_tokens"],
        "output": found["total_output_tokens"],
    }
    counted = gateway.until(
        lambda: [row for row in gateway.rows(SUMS, team=team) if row["n"] >= REQUESTS],
        APPLIED_LIMIT_S,
    )
    assert counted == [expected]
