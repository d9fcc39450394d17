"""Quantization of a model with llm-compressor, calibrated on prompts; prints JSON lines.

Progress lines are `{"stage", "seconds"}`, the last line is `{"done": {...}}`. Calibration uses the
model's own greedy answers, so that it observes what the model will serve. Methods: `fp8` and
`int8` (weights per output channel, activations per token), `gptq` (4-bit weights in groups of 128,
activations not quantized), `awq` (likewise, after AWQ's scaling), `fp8-kv` (only the KV cache, one
calibrated scale per layer for keys and one for values).

Runs as a standalone script: `python compress.py MODEL OUT --method gptq --prompts FILE`.
"""

import argparse
import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import transformers
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from llmcompressor.modifiers.transform.awq import AWQModifier
from llmcompressor.pipelines.cache import IntermediatesCache

METHODS = ("fp8", "int8", "gptq", "awq", "fp8-kv")
CALIBRATED = ("gptq", "awq", "fp8-kv")
PACKAGES = ("llmcompressor", "compressed-tensors", "transformers", "torch")
_AT_ONCE = 16


class Progress:
    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 2)

    def say(self, stage: str) -> None:
        sys.stdout.write(json.dumps({"stage": stage, "seconds": self.seconds}) + "\n")
        sys.stdout.flush()


def recipe(method: str) -> list[Any]:
    """Return llm-compressor's modifiers for a method. `lm_head` keeps its 16 bits."""
    linear: dict[str, Any] = {"targets": ["Linear"], "ignore": ["lm_head"]}
    if method == "fp8":
        return [QuantizationModifier(scheme="FP8_DYNAMIC", **linear)]
    if method == "int8":
        return [QuantizationModifier(scheme="W8A8", **linear)]
    if method == "gptq":
        return [GPTQModifier(scheme="W4A16", **linear)]
    if method == "awq":
        return [AWQModifier(), QuantizationModifier(scheme="W4A16_ASYM", **linear)]
    cache = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False,
             "symmetric": True}  # fmt: skip
    return [QuantizationModifier(kv_cache_scheme=cache)]


def messages_of(line: str) -> list[dict[str, Any]]:
    """Return the messages of a prompt line of `breakeven engine eval`.

    A line has `messages`, or a `prompt` that becomes a user message.
    """
    document = json.loads(line)
    return document.get("messages") or [{"role": "user", "content": document["prompt"]}]


def calibration_rows(
    model: Any, tokenizer: Any, prompts: list[list[dict[str, Any]]], answer: int, longest: int
) -> list[list[int]]:
    """Return the token ids of each prompt with the model's own answer, without padding."""
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    rows: list[list[int]] = []
    for first in range(0, len(prompts), _AT_ONCE):
        texts = [
            tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            for messages in prompts[first : first + _AT_ONCE]
        ]
        given = tokenizer(
            texts, return_tensors="pt", padding=True, truncation=True, max_length=longest,
            add_special_tokens=False,
        ).to(model.device)  # fmt: skip
        given.pop("token_type_ids", None)
        with torch.no_grad():
            whole = model.generate(**given, max_new_tokens=answer, do_sample=False)
        for row, mask in zip(whole.tolist(), given["attention_mask"].tolist(), strict=True):
            kept = row[mask.index(1) :]
            while kept and kept[-1] == tokenizer.pad_token_id:
                kept.pop()
            rows.append(kept)
    return rows


def as_batches(rows: list[list[int]]) -> Any:
    """Return batches of one row, so that calibration never observes padding."""

    def batch(items: list[list[int]]) -> dict[str, Any]:
        ids = torch.tensor(items)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    return torch.utils.data.DataLoader(rows, batch_size=1, collate_fn=batch)


def compress(given: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    if not torch.cuda.is_available():
        # llm-compressor 0.14 pins AWQ's observations for an accelerator even if there is none.
        IntermediatesCache.pin_memory = lambda *_, **__: None
    progress.say("loading the model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(given.model)
    model = transformers.AutoModelForCausalLM.from_pretrained(given.model, dtype="auto")
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    told: dict[str, Any] = {}
    more: dict[str, Any] = {}
    if given.method in CALIBRATED:
        lines = given.prompts.read_text(encoding="utf-8").splitlines()
        prompts = [messages_of(line) for line in lines if line.strip()][: given.rows]
        progress.say(f"answering {len(prompts)} prompts")
        rows = calibration_rows(model, tokenizer, prompts, given.answer, given.longest)
        told = {"prompts": len(rows), "tokens": sum(map(len, rows))}
        more = {"dataset": as_batches(rows), "num_calibration_samples": len(rows),
                "max_seq_length": given.longest + given.answer,
                "shuffle_calibration_samples": False}  # fmt: skip
    progress.say(f"quantizing by {given.method}")
    oneshot(model=model, tokenizer=tokenizer, recipe=recipe(given.method), **more)
    progress.say("writing")
    model.save_pretrained(given.out, save_compressed=True)
    tokenizer.save_pretrained(given.out)
    size = sum(path.stat().st_size for path in Path(given.out).glob("*.safetensors"))
    return {"method": given.method, "by": "llm-compressor", "bytes": size,
            "calibration": told, "versions": versions()}  # fmt: skip


def versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--prompts", type=Path, help="JSON lines with `messages` or `prompt`")
    parser.add_argument("--rows", type=int, default=512, help="prompts that calibrate, at most")
    parser.add_argument("--answer", type=int, default=48, help="tokens of an answer")
    parser.add_argument("--longest", type=int, default=2048, help="tokens of a prompt")
    given = parser.parse_args(arguments)
    if given.method in CALIBRATED and given.prompts is None:
        parser.error(f"{given.method} needs --prompts")
    progress = Progress()
    done = compress(given, progress)
    sys.stdout.write(json.dumps({"done": done | {"seconds": progress.seconds}}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
