"""What is packed means what was rounded, read back by each format's own rule, number by number."""

import json
import subprocess
from pathlib import Path

import pytest

from backends.engine import shipped

ROOT = Path(__file__).parents[4]
pytestmark = [pytest.mark.part("vllm"), pytest.mark.long]
# On the engine's interpreter. The rules are written out here by place, not by the code's own loops.
READ = """
import json, sys, safetensors.torch
folder, dense, method = sys.argv[1:]
packed = safetensors.torch.load_file(folder + "/model.safetensors")
plain = safetensors.torch.load_file(dense + "/model.safetensors")
worst = {}
for layer in ("model.layers.1.self_attn.k_proj", "model.layers.3.mlp.down_proj"):
    meant = plain[layer + ".weight"].float()
    of = {name: packed[f"{layer}.{name}"] for name in ("qweight", "qzeros", "scales", "weight",
          "weight_scale") if f"{layer}.{name}" in packed}
    found = []
    for o, i in [(0, 0), (5, 1), (11, 130), (63, 255), (62, 7), (33, 200)]:
        if method in ("int8", "fp8"):
            value = float(of["weight"][o, i]) * float(of["weight_scale"][o, 0])
        else:
            g, number = i // 128, lambda word, place: (int(word) >> (4 * place)) & 15
            if method == "gptq":
                whole = number(of["qweight"][i // 8, o], i % 8)
                zero = number(of["qzeros"][g, o // 8], o % 8) + 1
            else:
                place = [0, 4, 1, 5, 2, 6, 3, 7][o % 8]
                whole = number(of["qweight"][i, o // 8], place)
                zero = number(of["qzeros"][g, o // 8], place)
            value = (whole - zero) * float(of["scales"][g, o])
        found.append(abs(value - float(meant[o, i])))
    worst[layer] = max(found) / float(meant.abs().max())
print(json.dumps(worst))
"""


def run(python: Path, *words: object) -> str:
    command = [str(python), *(str(word) for word in words)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def prompts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    asked = ("Hello", "What does shutil.copy do?", "Explain json.dumps.", "Explain os.walk.")
    path.write_text("".join(json.dumps({"prompt": request}) + "\n" for request in asked))
    return path


@pytest.mark.parametrize("method", ["int8", "fp8", "gptq", "awq"])
def test_formats_hold_the_rounded_weights(engine_python, prompts, tmp_path, method):
    words = ("-m", "backends.engine.training.quantize", shipped.DIRECTORY)
    more = ("--method", method, "--prompts", prompts)
    run(engine_python, *words, tmp_path / "packed", *more)
    run(engine_python, *words, tmp_path / "dense", *more, "--dense")
    said = run(engine_python, "-c", READ, tmp_path / "packed", tmp_path / "dense", method)
    assert max(json.loads(said).values()) < 5e-3, "16 bits apart, no more"
    config = json.loads((tmp_path / "packed" / "config.json").read_text())
    assert config["quantization_config"]["quant_method"] in (method, "compressed-tensors")
    assert not (tmp_path / "packed" / "training.json").exists()
