"""The probe's program on the engine's own torch, with sizes that two cores have time for."""

import json
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "backends" / "engine" / "inside" / "probe.py"
LIMIT_S = 120


def measured(python: Path, *words: str) -> dict:
    answer = subprocess.run(
        [python, "-P", SCRIPT, "--small", *words],
        check=True, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    return json.loads(answer.stdout)


@pytest.mark.part("vllm")
def test_attention_is_right_before_it_is_fast(engine_python: Path):
    """Plain and fused agree on random inputs, prompts and decode steps; a wrong mask does not."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import probe, torch\n"
        "one = probe.DeviceProbe(gpu=False, small=True, tokens=())\n"
        "def apart(queries, tokens, spoil=1):\n"
        "    q = one.random(1, probe.HEADS, queries, probe.HEAD)\n"
        "    k, v = (one.random(1, probe.KV_HEADS, tokens, probe.HEAD) for _ in range(2))\n"
        "    a = probe.plain(q, k, v).float(); b = probe.fused(q, k * spoil, v).float()\n"
        "    return ((a - b).norm() / b.norm()).item()\n"
        "print(apart(48, 48), apart(1, 48), apart(48, 48, 2))\n"
    )
    words = [engine_python, "-c", code, SCRIPT.parent]
    said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    prefill, decode, spoilt = map(float, said.stdout.split())
    assert prefill < 2e-2
    assert decode < 2e-2
    assert spoilt > 2e-2


@pytest.mark.part("vllm")
@pytest.mark.long
def test_a_processor_is_measured_whole(engine_python: Path):
    made = measured(engine_python, "--tokens", "128", "256", "--ranks", "2")
    assert made["breakeven_probe"] == 1
    assert made["device"]["kind"] == "cpu"
    for flop in (made["bandwidth"], *made["flops"].values()):
        assert 0 < flop["low"] <= flop["value"] <= flop["high"]
    assert "bf16" in made["flops"]
    assert set(made["flops"]) | set(made["unavailable"]) == {"bf16", "fp16", "fp8", "int8"}
    assert made["launch"]["each_s"]["value"] > 0
    seen = {(item["tokens"], item["phase"], item["kernel"]) for item in made["attention"]}
    assert len(seen) == len(made["attention"]) == 2 * 2 * 2
    assert [item["ranks"] for item in made["all_reduce"]] == [2]


@pytest.mark.part("vllm")
@pytest.mark.long
def test_scores_that_no_memory_holds_are_a_reason_and_end_nothing(engine_python: Path):
    made = measured(engine_python, "--only", "attention", "--tokens", "4096")
    rows = {(item["phase"], item["kernel"]): item for item in made["attention"]}
    assert "its scores alone are 1 GiB" in rows["prefill", "plain"]["failed"]
    assert rows["prefill", "fused"]["seconds"]["value"] > 0
    assert "flops" not in made
