"""vLLM's own load generators run through the gateway: what they counted is what was booked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

APPLIED_LIMIT_S = 120
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
            "pools": {name: {"engine": pool, "gpu": gpu} for name, pool in pools.items()},
        }
    )
    found.until(lambda: found.rows("SELECT 1 FROM engine_samples LIMIT 1"), 60)
    return found


def ran(command: list[object], folder: Path, **environ: str) -> None:
    """A load generator as a person would start it, without a way to any hub of models."""
    told = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_HUB_OFFLINE": "1", **environ}
    answer = subprocess.run(
        [str(word) for word in command],
        cwd=folder, env=told, check=False, capture_output=True, text=True,
        timeout=PROGRAM_LIMIT_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-4000:]


def booked(gateway, team: str) -> list[dict]:
    return gateway.until(
        lambda: [row for row in gateway.rows(SUMS, team=team) if row["n"] >= REQUESTS],
        APPLIED_LIMIT_S,
    )


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
    flags = [word for name, value in words.items() for word in (f"--{name}", value)]
    program = [engine_python.with_name("vllm"), "bench", "serve", "--ignore-eos", "--save-result"]
    ran(
        [*program, *flags], tmp_path,
        OPENAI_API_KEY=gateway.key(team=team), VLLM_NO_USAGE_STATS="1",
    )  # fmt: skip
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (found["completed"], found["failed"]) == (REQUESTS, 0)
    assert found["total_output_tokens"] == REQUESTS * OUTPUT_TOKENS
    expected = {
        "n": found["completed"],
        "input": found["total_input_tokens"],
        "output": found["total_output_tokens"],
    }
    assert booked(gateway, team) == [expected]


@pytest.mark.parametrize("target", ["simulated", "real"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_guidellm(
    gateway, tiny_engine, guidellm: Path, tmp_path: Path, path: str, target: str
) -> None:
    """It asks for `/health` first, and each answer for its usage."""
    team = f"guidellm-{target}{path.replace('/', '-')}"
    result = tmp_path / "found.json"
    words = {
        "backend": {
            "kind": "openai_http", "target": gateway.root, "model": target,
            "request_format": path, "api_key": gateway.key(team=team),
        },
        "tokenizer": {"kind": "huggingface_auto", "model": str(tiny_engine.directory)},
        "data": {"kind": "synthetic_text", "prompt_tokens": 24, "output_tokens": OUTPUT_TOKENS},
        "profile": {"kind": "concurrent", "streams": [4]},
        "constraint": {"kind": "max_requests", "count": REQUESTS},
        "output": {"kind": "json", "path": str(result)},
    }  # fmt: skip
    flags = [word for name, value in words.items() for word in (f"--{name}", json.dumps(value))]
    ran([guidellm, "run", *flags, "--disable-console-interactive"], tmp_path)
    (measured,) = json.loads(result.read_text(encoding="utf-8"))["benchmarks"]
    asked = measured["requests"]
    assert (asked["errored"], asked["incomplete"]) == ([], [])
    assert {item["output_tokens"] for item in asked["successful"]} == {OUTPUT_TOKENS}
    expected = {
        "n": len(asked["successful"]),
        "input": sum(item["prompt_tokens"] for item in asked["successful"]),
        "output": sum(item["output_tokens"] for item in asked["successful"]),
    }
    assert expected["n"] == REQUESTS
    assert booked(gateway, team) == [expected]
