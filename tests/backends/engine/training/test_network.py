"""The network that is trained says what Transformers says of the checkpoint that it writes."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# On the engine's interpreter: both losses of one row, of weights large enough to tell layers apart.
BOTH = """
import json, sys, torch, transformers, safetensors.torch
from backends.engine.training.network import Llama, NetworkSize, checkpoint, config
torch.manual_seed(0)
size, folder = NetworkSize(vocabulary=256, layers=2), sys.argv[1]
network = Llama(size).eval()
for weight in network.parameters():
    weight.data = (weight.data * 4).bfloat16().float()
ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
safetensors.torch.save_file(
    checkpoint(dict(network.named_parameters())), folder + "/model.safetensors", {"format": "pt"})
open(folder + "/config.json", "w").write(json.dumps(config(size, ids)))
loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
rows = torch.randint(0, 256, (2, 300))
with torch.no_grad():
    print(json.dumps([network(rows).item(), loaded(rows, labels=rows).loss.item()]))
"""


@pytest.mark.part("vllm")
@pytest.mark.long
def test_both_say_the_same_of_the_same_text(engine_python: Path, tmp_path: Path):
    answer = subprocess.run(
        [str(engine_python), "-c", BOTH, str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    ours, theirs = json.loads(answer.stdout.splitlines()[-1])
    assert ours == pytest.approx(theirs, abs=1e-4)
