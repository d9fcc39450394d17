"""Two LoRA adapters on a real vLLM: one changes the answer, one does not, each by its name.

Beside it a second pool serves the same weights on the same machine. And one that only vLLM can
tell is none: the model and its other adapters serve without it.
"""

import json
import struct
import subprocess
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from backends.engine import shipped
from gateway.cli.app import app

pytestmark = [pytest.mark.real, pytest.mark.part("vllm"), pytest.mark.long]
RANK = 8


def write_adapter(folder: Path, weight: float) -> Path:
    """Rank 8 over every layer's value projection; with weight 0 it changes nothing."""
    folder.mkdir()
    config = json.loads((shipped.DIRECTORY / "config.json").read_text())
    hidden, heads = config["hidden_size"], config["num_key_value_heads"] * config["head_dim"]
    tensors: dict[str, tuple[list[int], list[float]]] = {}
    for layer in range(config["num_hidden_layers"]):
        name = f"base_model.model.model.layers.{layer}.self_attn.v_proj"
        rising = [((7 * place) % 13 - 6) / 6 for place in range(RANK * hidden)]
        falling = [weight * ((5 * place) % 11 - 5) for place in range(heads * RANK)]
        tensors[f"{name}.lora_A.weight"] = [RANK, hidden], rising
        tensors[f"{name}.lora_B.weight"] = [heads, RANK], falling
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        offsets = [len(data), len(data) + len(packed)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        data += packed
    text = json.dumps(header).encode()
    file = folder / "adapter_model.safetensors"
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
    made = {"peft_type": "LORA", "r": RANK, "lora_alpha": 16, "target_modules": ["v_proj"],
            "bias": "none", "task_type": "CAUSAL_LM"}  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(made))
    return folder


@pytest.fixture(scope="module")
def gateway(serve, engine_python: Path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    engine = {"kind": "vllm", "model": str(shipped.DIRECTORY), "replicas": 1, "port": 0,
              "environment": str(engine_python.parent.parent),
              "flags": ["--max-model-len", "1024"]}  # fmt: skip
    changed, plain = write_adapter(folder / "sql", 0.2), write_adapter(folder / "same", 0.0)
    adapters = {"sql": str(changed), "same": str(plain)}
    gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1, "machine": "here"}
    compare = {"compare_with": ["openai/gpt-4o-mini"]}
    running = serve(
        {
            "models": {"tiny": {"targets": ["pool:tiny"], **compare},
                       "second": {"targets": ["pool:second"], **compare}},
            "pools": {
                "tiny": {"engine": engine | {"adapters": adapters}, "gpu": gpu},
                "second": {"engine": engine, "gpu": gpu},
            },
        }
    )  # fmt: skip
    running.headers = {"authorization": f"Bearer {running.key()}"}
    return running


def ask(gateway, model: str, **more: object) -> httpx.Response:
    body = {"model": model, "temperature": 0, "max_tokens": 24,
            "messages": [{"role": "user", "content": "What is Python?"}], **more}  # fmt: skip
    url = gateway.base_url + "/chat/completions"
    return httpx.post(url, json=body, headers=gateway.headers, timeout=120, trust_env=False)


def test_an_adapter_answers_by_its_name_beside_its_model_and_another_pool(gateway):
    for model in ("tiny", "second"):
        gateway.until(lambda model=model: ask(gateway, model).status_code == 200, 600)
    said = {}
    for model in ("tiny", "same", "sql", "second"):
        answer = ask(gateway, model)
        assert answer.status_code == 200, answer.text
        said[model] = answer.json()["choices"][0]["message"]["content"]
        wanted = "pool:second/0" if model == "second" else "pool:tiny/0"
        assert answer.headers["x-breakeven-backend"] == wanted
        row = gateway.until(
            lambda answer=answer: gateway.rows(
                "select * from attempts where request_id = :id",
                id=answer.headers["x-request-id"],
            ),
            30,
        )[0]
        assert row["model"] == model
    assert said["same"] == said["tiny"] == said["second"]
    assert said["sql"] != said["tiny"]  # the control: an adapter that is not applied would say it
    streamed = ask(gateway, "sql", stream=True)
    assert "data: [DONE]" in streamed.text
    assert ask(gateway, "sqk").status_code == 404


IN_PICKLES = """
import os, sys, torch
from safetensors.torch import load_file
folder = sys.argv[1]
found = load_file(f"{folder}/adapter_model.safetensors")
renamed = {name.replace("v_proj", "other_proj"): one for name, one in found.items()}
torch.save(renamed, f"{folder}/adapter_model.bin", _use_new_zipfile_serialization=False)
os.unlink(f"{folder}/adapter_model.safetensors")
"""


@pytest.fixture(scope="module")
def spoiled(serve, engine_python: Path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spoiled")
    names = ("sql", "odd", "law")
    adapters = {name: str(write_adapter(folder / name, 0.2)) for name in names}
    subprocess.run([engine_python, "-c", IN_PICKLES, adapters["odd"]], check=True, timeout=120)
    engine = {"kind": "vllm", "model": str(shipped.DIRECTORY), "replicas": 1, "port": 0,
              "environment": str(engine_python.parent.parent), "adapters": adapters,
              "flags": ["--max-model-len", "1024"]}  # fmt: skip
    gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1}
    running = serve(
        {
            "models": {"tiny": {"targets": ["pool:tiny"], "compare_with": ["openai/gpt-4o-mini"]}},
            "pools": {"tiny": {"engine": engine, "gpu": gpu}},
        }
    )
    running.headers = {"authorization": f"Bearer {running.key()}"}
    return running


def test_an_adapter_that_vllm_refuses_takes_nobody_else_along(spoiled):
    """It kept the model and all other adapters down: every start ended at it."""
    spoiled.until(lambda: ask(spoiled, "tiny").status_code == 200, 600)
    for model in ("sql", "law"):
        assert ask(spoiled, model).status_code == 200
    assert ask(spoiled, "odd").status_code == 404
    words = ["engine", "status", "--json", "--config", str(spoiled.config)]
    (seen,) = json.loads(CliRunner().invoke(app, words).stdout)
    assert seen["reason"].startswith("without the adapter `odd`: vLLM could not load it: ")
    assert "other_proj" in seen["reason"]
