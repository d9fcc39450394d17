"""The program that measures KV's way: two processes on torch, with a stand-in for NIXL's agents.

NIXL itself is no part of the tests: its agents are played by files, so what is tested is that both
processes meet, that what was read is compared, and that UCX's lines pass through.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "backends" / "engine" / "inside" / "kv_transfer.py"
LIMIT_S = 120
AGENTS = """
import os, torch
class nixl_agent_config:
    def __init__(self, backends): pass
class nixl_agent:
    def __init__(self, name, config): print("| remote memory read by ucp_get* into host |")
    def register_memory(self, tensor): self.tensor = tensor
    def get_xfer_descs(self, parts): return parts
    def get_agent_metadata(self): return b"meta"
    def get_serialized_descs(self, parts):
        if os.environ.get("OWNER_DIES"): raise SystemExit(3)
        return bytes([int(parts[0][0])])
    def add_remote_agent(self, metadata): return "owner"
    def deserialize_descs(self, words): return words[0]
    def initialize_xfer(self, operation, mine, theirs, owner, word): return mine, theirs
    def transfer(self, request):
        for part in request[0]: part.fill_(request[1] + int(os.environ.get("WRONG_BY", "0")))
        return "PROC"
    def check_xfer_state(self, request): return "DONE"
    def release_xfer_handle(self, request): pass
"""


@pytest.fixture
def run(engine_python: Path, tmp_path: Path):
    package = tmp_path / "nixl"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_api.py").write_text(AGENTS)

    def start(**told: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), **told}
        return subprocess.run(
            [engine_python, "-P", SCRIPT, "--mib", "1"],
            env=environ, check=False, capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip

    return start


@pytest.mark.part("vllm")
def test_both_ways_are_measured_and_ucx_is_quoted(run) -> None:
    done = run()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["breakeven_kv"], told["memory"]) == (1, "host")
    assert (told["whole"]["descriptors"], told["blocks"]["descriptors"]) == (1, 16)
    assert 0 < told["whole"]["low"] <= told["whole"]["value"] <= told["whole"]["high"]
    assert "ucp_get" in done.stdout


@pytest.mark.part("vllm")
@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"WRONG_BY": "1"}, "what was read is not what the owner holds"),
        ({"OWNER_DIES": "1"}, "the process that owns the memory ended early"),
    ],
)
def test_what_goes_wrong_is_no_figure(run, told: dict[str, str], said: str) -> None:
    done = run(**told)
    assert done.returncode != 0
    assert said in done.stderr
    assert "breakeven_kv" not in done.stdout
