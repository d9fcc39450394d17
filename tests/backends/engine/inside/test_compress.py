"""llm-compressor on the shipped model: what it writes is of the format that was asked for."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from backends.engine import shipped
from deploy import parts

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "backends" / "engine" / "inside" / "compress.py"
pytestmark = [pytest.mark.part("vllm"), pytest.mark.part("compressor"), pytest.mark.long]
READ = """
import json, sys, safetensors.torch
found = safetensors.torch.load_file(sys.argv[1] + "/model.safetensors")
print(json.dumps({name: [str(one.dtype), one.float().abs().max().item()]
                  for name, one in found.items() if "layers.2." in name}))
"""
# AWQ searches 20 scales a layer: minutes on a CPU, so it is not here.
WRITTEN = {
    "gptq": ("weight_packed", "torch.int32"),
    "fp8": ("weight", "torch.float8_e4m3fn"),
    "int8": ("weight", "torch.int8"),
}


@pytest.fixture
def compressor() -> Path:
    folder = parts.find_compressor()
    assert folder is not None, "the part `compressor` is marked as there"
    return folder


@pytest.fixture
def compress(engine_python: Path, compressor: Path, tmp_path: Path):
    def make(method: str) -> tuple[dict, dict, dict]:
        prompts = tmp_path / "prompts.jsonl"
        asked = ("Hello", "What does shutil.copy do?", "Explain json.dumps.")
        prompts.write_text("".join(json.dumps({"prompt": request}) + "\n" for request in asked))
        out = tmp_path / method
        words = [engine_python, "-P", SCRIPT, shipped.DIRECTORY, out, "--method", method,
                 "--prompts", prompts, "--answer", "8"]  # fmt: skip
        environ = {**os.environ, "PYTHONPATH": str(compressor), "HF_HUB_OFFLINE": "1"}
        told = subprocess.run(words, env=environ, check=True, capture_output=True, text=True).stdout
        read = [engine_python, "-c", READ, out]
        tensors = subprocess.run(read, check=True, capture_output=True, text=True).stdout
        config = json.loads((out / "config.json").read_text())["quantization_config"]
        done = next(line for line in told.splitlines() if line.startswith('{"done"'))
        return json.loads(done)["done"], config, json.loads(tensors)

    return make


@pytest.mark.parametrize("method", WRITTEN)
def test_weights_are_of_the_format_that_was_asked_for(compress, method):
    done, config, tensors = compress(method)
    assert done["method"] == method
    assert config["ignore"] == ["lm_head"]
    name, kind = WRITTEN[method]
    assert tensors[f"model.layers.2.mlp.down_proj.{name}"][0] == kind
    assert done["calibration"].get("prompts", 0) == (3 if method == "gptq" else 0)


def test_a_calibrated_cache_has_a_scale_for_keys_and_one_for_values(compress):
    done, config, tensors = compress("fp8-kv")
    assert config["kv_cache_scheme"]["num_bits"] == 8
    assert tensors["model.layers.2.self_attn.q_proj.weight"][0] == "torch.bfloat16"
    for name in ("k_scale", "v_scale"):
        assert 0 < tensors[f"model.layers.2.self_attn.{name}"][1] < 1, "448 steps of what was seen"
    assert done["calibration"]["tokens"] > 20
