"""`breakeven engine probe`: a table, a file, and a plan that takes what was measured."""

import json
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

MODEL = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


def three(value: float) -> dict[str, float]:
    return {"value": value, "low": value, "high": value}


PROBED = {
    "breakeven_probe": 1,
    "at": "2026-11-22T18:00:00+00:00",
    "device": {"kind": "gpu", "name": "NVIDIA H200", "count": 2, "torch": "2.13.0"},
    "bandwidth": three(4.0e12),
    "flops": {"bf16": three(700e12)},
    "launch": {"each_s": three(5e-6), "each_in_graph_s": three(1e-6)},
    "attention": [
        {"tokens": 512, "phase": "prefill", "kernel": "plain", "seconds": three(4e-3)},
        {"tokens": 512, "phase": "prefill", "kernel": "fused", "seconds": three(1e-3)},
    ],
    "all_reduce": [
        {"ranks": 2, "bytes": 65536, "seconds": three(2e-5), "bus_bytes_s": 3.2e9},
    ],
    "kv_transfer": {
        "memory": "two GPUs",
        "whole": {**three(2.1e11), "descriptors": 1},
        "blocks": {**three(5e10), "descriptors": 16384},
        "ucx": ["remote memory read by ucp_get* into cuda from cuda",
                "0..inf | zero-copy | cuda_ipc/cuda"],
    },
    "unavailable": {"int8": "RuntimeError: no such kernel"},
}  # fmt: skip


def invoke(*words: object):
    return CliRunner().invoke(app, ["engine", *(str(word) for word in words)])


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An interpreter that has measured already."""
    python = tmp_path / "engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\nprint({json.dumps(PROBED)!r})\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return tmp_path / "engine"


def test_a_table_beside_the_data_sheet_and_a_file(engine, tmp_path):
    out = tmp_path / "probe.json"
    answer = invoke("probe", "--engine", engine, "--out", out)
    assert answer.exit_code == 0, answer.output
    for words in ("2 x NVIDIA H200", "83 %", "71 %", "one by one: 5.00 us", "graph: 1.00 us",
                  "4 ms", "4.0", "64 KiB over 2: 20.0 us, 3.2 GB/s", "int8 was not",
                  "(two GPUs): 210.00 GB/s in 1 pieces",
                  "50.00 GB/s in 16,384 pieces, by cuda_ipc"):  # fmt: skip
        assert words in answer.stdout, words
    assert json.loads(out.read_text()) == PROBED
    assert json.loads(invoke("probe", "--engine", engine, "--json").stdout) == PROBED


def test_a_plan_takes_what_was_measured_and_says_so(engine, tmp_path):
    out = tmp_path / "probe.json"
    assert invoke("probe", "--engine", engine, "--out", out).exit_code == 0
    (tmp_path / "config.json").write_text(json.dumps(MODEL))

    def floor(*words: object) -> dict:
        answer = invoke("plan", tmp_path, *words, "--json")
        assert answer.exit_code == 0, answer.output
        return {figure["name"]: figure for figure in json.loads(answer.stdout)["figures"]}

    known, probed = floor("--gpu", "H200"), floor("--probe", out)
    ratio = probed["decode_floor_s"]["value"] / known["decode_floor_s"]["value"]
    assert ratio == pytest.approx(4.3 / 4.0)
    assert "engine probe on NVIDIA H200, torch 2.13.0, 2026-11-22" in probed["bandwidth"]["formula"]
    assert "engine probe" not in known["bandwidth"]["formula"]
    wrong = invoke("plan", tmp_path, "--gpu", "H100", "--probe", out)
    assert wrong.exit_code == 1
    assert "measured on NVIDIA H200, but the plan is for H100" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("probe", "--only", "speed"), "no part is named speed"),
        (("probe", "--tokens", "many"), "not a list of numbers"),
        (("probe", "--tokens=512,-5"), "a length is at least 1"),
        (("probe", "--engine", "nowhere"), "breakeven engine install"),
        (("plan", "."), "say --gpu"),
        (("plan", ".", "--probe", "nowhere.json"), "No such file"),
    ],
)
def test_mistakes_are_told(words, said):
    answer = invoke(*words)
    assert answer.exit_code == 1
    assert said in answer.stderr
