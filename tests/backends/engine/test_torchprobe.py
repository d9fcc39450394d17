"""Probe files: what they say beside the data sheet, and which of them a plan may use."""

import json
import stat
import sys
from pathlib import Path

import pytest

from backends.engine import torchprobe
from backends.engine.catalog import find_gpu
from backends.engine.environment import Environment
from backends.engine.torchprobe import ProbeFileError, ProbeRequest


def three(value: float) -> dict[str, float]:
    return {"value": value, "low": 0.9 * value, "high": 1.1 * value}


PROBED = {
    "breakeven_probe": 1,
    "at": "2026-11-22T18:00:00+00:00",
    "device": {"kind": "gpu", "name": "NVIDIA H100 80GB HBM3", "count": 1, "torch": "2.13.0"},
    "bandwidth": three(3.0e12),
    "flops": {"bf16": three(700e12), "fp8": three(1200e12)},
    "attention": [
        {"tokens": 512, "phase": "prefill", "kernel": "plain", "seconds": three(4e-3)},
        {"tokens": 512, "phase": "prefill", "kernel": "fused", "seconds": three(1e-3)},
        {"tokens": 32768, "phase": "prefill", "kernel": "plain", "failed": "out of memory"},
        {"tokens": 32768, "phase": "prefill", "kernel": "fused", "seconds": three(0.5)},
    ],
}


def test_rates_stand_beside_the_data_sheet():
    rates = {named.name: named for named in torchprobe.compare_rates(PROBED)}
    assert rates["bandwidth"].ratio == pytest.approx(3.0e12 / find_gpu("H100").bandwidth_bytes_s)
    assert rates["bf16"].ratio == pytest.approx(700e12 / find_gpu("H100").flops["bf16"])
    assert set(rates) == {"bandwidth", "bf16", "fp8"}


def test_a_processor_has_no_data_sheet():
    document = {**PROBED, "device": {"kind": "cpu", "name": "AVX512", "torch": "2.13.0"}}
    assert all(item.ratio is None for item in torchprobe.compare_rates(document))
    with pytest.raises(ProbeFileError, match="measured on a CPU"):
        torchprobe.measured(find_gpu("H100"), document)


def test_what_was_measured_replaces_the_catalogue_and_says_so():
    sheet = find_gpu("H100")
    gpu = torchprobe.measured(sheet, PROBED)
    assert gpu.best_bandwidth_bytes_s == 3.0e12
    assert gpu.best_flops("fp8") == 1200e12
    assert gpu.best_flops("int8") == sheet.flops["int8"], "not measured"
    assert "engine probe on NVIDIA H100 80GB HBM3" in gpu.bandwidth_basis
    assert "2026-11-22" in gpu.flops_basis("bf16")


def test_a_number_that_no_data_sheet_states_is_left_out_of_a_plan():
    """An A100 multiplies no fp8; a rate that a library emulates must not look like a unit's."""
    document = {**PROBED, "device": {"kind": "gpu", "name": "NVIDIA A100-SXM4-80GB"}}
    gpu = torchprobe.measured(find_gpu("A100-80GB"), document)
    assert "fp8" not in gpu.measured_flops


def test_a_probe_of_another_gpu_is_refused():
    with pytest.raises(ProbeFileError, match="measured on NVIDIA H100 80GB HBM3, but the plan"):
        torchprobe.measured(find_gpu("H200"), PROBED)


def test_attention_is_a_table_with_what_ran_out_of_memory():
    rows = torchprobe.attention_rows(PROBED)
    assert rows == [
        ("prefill", 512, [4e-3, 1e-3], 4.0),
        ("prefill", 32768, ["out of memory", 0.5], 0.0),
    ]


UCX = """| reader intra-node cfg#1                                          |
| remote memory read by ucp_get*(multi) into host memory from host |
+--------+-------------+-------------------------------------------+
| Range  | Description |                  Config                   |
+--------+-------------+-------------------------------------------+
| 0..512 | short       | tcp/lo                                    |
| 513..inf | zero-copy | cma/memory                                |
| reader intra-node cfg#1                              |
| active message by ucp_am_send*(egr) from host memory |
| 16516..inf | multi-frag copy-in | tcp/lo             |"""


@pytest.mark.parametrize(("rows", "said"), [(10, "cma/memory (zero-copy)"), (6, None), (0, None)])
def test_the_way_of_kv_is_read_from_ucxs_own_table(rows: int, said: str | None):
    """The largest reads count; what a message is sent by does not."""
    lines = [line.partition("|")[2].strip(" |") for line in UCX.splitlines()[:rows] if "|" in line]
    assert torchprobe.kv_transport({"kv_transfer": {"ucx": lines}}) == said
    assert torchprobe.kv_transport({}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "has no `engine probe`"),
        ('{"breakeven_probe": 2, "device": {}}', "of format 1"),
        ('{"breakeven_probe": 1}', "names no device"),
        (None, "No such file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str | None, said: str):
    path = tmp_path / "probe.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ProbeFileError, match=said):
        torchprobe.read(path)


def interpreter(folder: Path, body: str) -> Environment:
    """A stand-in for the engine's Python: prints what the program would."""
    environment = Environment(folder)
    environment.python.parent.mkdir(parents=True)
    environment.python.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    environment.python.chmod(environment.python.stat().st_mode | stat.S_IXUSR)
    return environment


def test_the_program_is_asked_for_what_was_wanted(tmp_path: Path):
    said = json.dumps({"breakeven_probe": 1, "device": {"kind": "cpu"}})
    place = interpreter(tmp_path, f"print(' '.join(sys.argv[1:])); print({said!r})")
    lines: list[str] = []
    request = ProbeRequest(place, "cpu", ("flops", "attention"), (64, 128), small=True)
    assert torchprobe.measure(request, lines.append)["device"] == {"kind": "cpu"}
    assert lines[0].startswith("-P ")
    assert lines[0].endswith("--only flops attention --tokens 64 128 --small")


@pytest.mark.parametrize("body", ["sys.exit('ImportError: no torch')", "print('nothing')"])
def test_a_program_that_fails_is_quoted(tmp_path: Path, body: str):
    with pytest.raises(ProbeFileError, match=r"the probe failed:\n(ImportError|nothing)"):
        torchprobe.measure(ProbeRequest(interpreter(tmp_path, body), "cpu"))
