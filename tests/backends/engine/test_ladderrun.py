"""Climbing: every rung measured alike and once, failures kept; then once with the real parts."""

import json
import stat
import sys
from pathlib import Path

import pytest

from backends.engine import ladderrun, tinymodel
from backends.engine.environment import Environment
from backends.engine.ladder import LadderLoad, LadderStep, lines, rungs
from backends.engine.ladderrun import LadderRun
from backends.engine.worklog import WorkLog

CLIMB = LadderLoad(users=2, prompt=48, output=4, shared=16)
# Stands in for the engine's Python: any server that is asked of it is a simulated one.
PYTHON = """
import os, sys
words = sys.argv[1:]
if "--help=all" in words:
    print("  --model MODEL"); print("  --served-model-name N"); print("  --port P")
    sys.exit()
if "max-autotune" in words:
    sys.exit("RuntimeError: no compiler")
told = [words[words.index(name) + 1] for name in ("--served-model-name", "--port")]
os.execv({python!r}, [{python!r}, "-m", "backends.simulator.server", "--profile",
    "h200-llama-3.1-8b-fp8", "--model", told[0], "--port", told[1]])
"""


@pytest.fixture
def ladder(tmp_path: Path) -> LadderRun:
    environment = Environment(tmp_path / "engine")
    environment.python.parent.mkdir(parents=True)
    body = PYTHON.format(python=sys.executable)
    environment.python.write_text(f"#!{sys.executable}\n{body}")
    environment.python.chmod(environment.python.stat().st_mode | stat.S_IXUSR)
    tinymodel.make(tmp_path / "tiny")
    return LadderRun(tmp_path / "tiny", environment, "cpu", CLIMB, tmp_path / "logs", 60.0)


def wanted(*names: str) -> list[LadderStep]:
    host = ladderrun.LadderHost(gpu=False)
    return [rung for rung in rungs(host, CLIMB) if rung.name in names]


async def test_rungs_are_measured_kept_and_a_failure_ends_nothing(ladder, tmp_path):
    log = WorkLog(tmp_path / "work.jsonl", {})
    said: list[str] = []
    asked = wanted("naive", "+ torch.compile, max-autotune", "vLLM, all of it off")
    # The stand-in knows none of vLLM's flags, which is this rung's failure.
    await ladderrun.run_steps(ladder, asked, log, said.append)
    assert said == [rung.name for rung in asked]
    assert "no compiler" in log.done["+ torch.compile, max-autotune"]["failed"]
    assert "no flag --enforce-eager" in log.done["vLLM, all of it off"]["failed"]
    naive = log.done["naive"]
    assert naive["ttft_s"] > 0
    assert min(naive["tokens_s"], naive["alone_tokens_s"]) > 0
    assert naive["memory_bytes"] > 1 << 20
    assert naive["flags"] == ["--attention", "eager"]
    made = {line.name: line for line in lines(asked, WorkLog(tmp_path / "work.jsonl", {}).done)}
    assert made["naive"].total_tokens == 1.0


async def test_an_interruption_keeps_what_was_measured(ladder, tmp_path):
    log = WorkLog(tmp_path / "work.jsonl", {})

    def say(name: str) -> None:
        if name != "naive":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await ladderrun.run_steps(ladder, wanted("naive", "+ SDPA"), log, say)
    assert list(WorkLog(tmp_path / "work.jsonl", {}).done) == ["naive"]


def test_a_host_is_what_is_there(ladder, tmp_path):
    assert not ladderrun.host_of(ladder.model, ladder.environment, "cpu").random_weights
    packages = ladder.environment.directory / "lib" / "python3.11" / "site-packages"
    (packages / "bitsandbytes").mkdir(parents=True)
    (ladder.model / "model.safetensors").unlink()
    config = json.loads((ladder.model / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8"}
    (ladder.model / "config.json").write_text(json.dumps(config))
    host = ladderrun.host_of(ladder.model, ladder.environment, "cuda")
    assert host == ladderrun.LadderHost(
        gpu=True, modules=frozenset({"bitsandbytes"}), quantized=True, random_weights=True
    )


@pytest.mark.long
@pytest.mark.part("vllm")
async def test_real_rungs_from_the_naive_server_to_batches(engine_python: Path, tmp_path):
    """Batches answer more than one at a time does: three servers of ours, two of vLLM."""
    tinymodel.make(tmp_path / "tiny")
    place = Environment(engine_python.parent.parent)
    made = LadderRun(tmp_path / "tiny", place, "cpu", CLIMB, tmp_path / "logs", 300.0)
    names = ["naive", "+ SDPA", "+ static batch of 2", "vLLM, all of it off",
             "+ continuous batching"]  # fmt: skip
    log = WorkLog(tmp_path / "work.jsonl", {})
    await ladderrun.run_steps(made, wanted(*names), log, lambda _: None)
    for name in names:
        assert "failed" not in log.done[name], log.done[name]
        assert log.done[name]["tokens_s"] > 0
