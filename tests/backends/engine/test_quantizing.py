"""What `engine quantize` refuses before it begins, what it starts, and what it leaves behind."""

import json
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from backends.engine import quantizing
from backends.engine.environment import Environment
from backends.engine.quantizing import QuantizeError, QuantizeRequest

# Stands in for the engine's interpreter: notes its words and its PYTHONPATH, and writes weights.
PROGRAM = """
import json, os, pathlib, sys
words = sys.argv[1:]
out = pathlib.Path(words[4] if "-m" in words else words[3])
out.mkdir()
(out.parent / "seen.json").write_text(json.dumps([words, os.environ.get("PYTHONPATH")]))
print(json.dumps({"stage": "quantizing by gptq", "seconds": 1.5}), flush=True)
if (out.parent / "breaks").exists():
    sys.exit("no kernel of that kind")
if not (out.parent / "nothing").exists():
    (out / "model.safetensors").write_bytes(b"x" * 25)
print(json.dumps({"done": {"seconds": 2.5, "calibration": {"prompts": 3, "tokens": 70}}}))
"""


@pytest.fixture
def request_(tmp_path: Path) -> QuantizeRequest:
    python = tmp_path / "engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\n{PROGRAM}")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    (model / "model.safetensors").write_bytes(b"x" * 100)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "Hello"}\n')
    (tmp_path / "compressor" / "llmcompressor").mkdir(parents=True)
    return QuantizeRequest(
        Environment(tmp_path / "engine"), "cpu", model, tmp_path / "out", "gptq", prompts,
        tmp_path / "compressor",
    )  # fmt: skip


def write_config(request: QuantizeRequest, text: str) -> QuantizeRequest:
    (request.model / "config.json").write_text(text)
    return request


def without_weights(request: QuantizeRequest) -> QuantizeRequest:
    (request.model / "model.safetensors").unlink()
    return request


REFUSED = {
    "no model": (lambda r: replace(r, model=r.model / "none"), "MODEL .* is not a model folder"),
    "no JSON": (lambda r: write_config(r, "{"), "MODEL .* is not JSON"),
    "a list": (lambda r: write_config(r, "[]"), "MODEL .* must hold a JSON object"),
    "no weights": (without_weights, r"MODEL .* no \*.safetensors"),
    "quantized": (
        lambda r: write_config(r, '{"quantization_config": {"quant_method": "awq"}}'),
        r"MODEL .* quantized already \(awq\)",
    ),
    "out is there": (lambda r: replace(r, out=r.model), "OUT .* exists"),
    "out has no folder": (
        lambda r: replace(r, out=r.out / "a" / "b"),
        "OUT .* is not a writable folder",
    ),
    "no prompts": (lambda r: replace(r, prompts=None), "--method gptq .*--prompts FILE"),
    "no engine": (
        lambda r: replace(r, environment=Environment(r.out)),
        "--engine .* breakeven engine install",
    ),
    "no llm-compressor": (
        lambda r: replace(r, compressor=r.model),
        "--compressor .* breakeven engine install --compressor .*--by breakeven",
    ),
    "own KV": (
        lambda r: replace(r, by="breakeven", method="fp8-kv"),
        "--method fp8-kv needs --by llm-compressor",
    ),
    "own Qwen": (
        lambda r: replace(
            write_config(r, '{"architectures": ["Qwen3ForCausalLM"]}'), by="breakeven"
        ),
        "LlamaForCausalLM alone",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_names_its_field_and_starts_nothing(request_, name):
    change, words = REFUSED[name]
    with pytest.raises(QuantizeError, match=words):
        quantizing.quantize(change(request_), lambda _: None)
    assert not (request_.out.parent / "seen.json").exists()


@pytest.mark.parametrize("by", get_args(quantizing.Quantizer))
def test_a_model_is_made_by_whom_was_named(request_, by):
    said: list[str] = []
    made = quantizing.quantize(replace(request_, by=by), said.append)
    assert (made.by, made.bytes_before, made.bytes_after) == (by, 100, 25)
    assert made.calibration == {"prompts": 3, "tokens": 70}
    assert "quantizing by gptq (2 s)" in said
    words, path = json.loads((request_.out.parent / "seen.json").read_text())
    assert (request_.out / "model.safetensors").exists()
    assert not request_.out.with_name("out.partial").exists()
    own = by == "breakeven"
    assert ("backends.engine.training.quantize" in words) == own
    assert ("--rows" in words) != own
    assert Path(path) == (quantizing._PACKAGE_ROOT if own else request_.compressor)


@pytest.mark.parametrize(("mark", "words"), [
    ("breaks", "(?s)--method gptq: llm-compressor ended with 1.*no kernel of that kind"),
    ("nothing", "wrote no weights"),
])  # fmt: skip
def test_what_breaks_leaves_nothing_that_looks_whole(request_, mark, words):
    (request_.out.parent / mark).touch()
    with pytest.raises(QuantizeError, match=words):
        quantizing.quantize(request_, lambda _: None)
    assert not request_.out.exists()
    assert not request_.out.with_name("out.partial").exists()
