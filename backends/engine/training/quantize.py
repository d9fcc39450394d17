"""Quantizer of Llama checkpoints for use with `breakeven engine eval`; simple and slow.

Methods: `int8` and `fp8` (weights by output channel, activations by token at run time; format
compressed-tensors), `gptq` and `awq` (4 bits in groups of inputs; each in its own format). Two
methods are wrong on purpose: `broken` has int8's numbers with the scale of the next channel, `int2`
rounds to four values. `--dense` writes the rounded weights as 16-bit numbers, for engines without
the format; activations are then not rounded, which matters for int8 and fp8.

It needs torch and transformers, which the engine's environment has. Run:

    python -m backends.engine.training.quantize MODEL OUT --method gptq --prompts prompts.jsonl
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import transformers

GROUP = 128
_ROWS = 4096  # of a layer's inputs, kept for calibration
_DAMP = 0.01  # of the mean diagonal, added so that GPTQ's matrix is invertible
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_STEPS = 20  # of AWQ's search for the exponent of the scale
# Layers with a common input, and the norm or layer before them that is scaled inversely.
_TOGETHER = (
    (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "input_layernorm"),
    (("mlp.gate_proj", "mlp.up_proj"), "post_attention_layernorm"),
    (("mlp.down_proj",), "mlp.up_proj"),
)
_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class QuantizedWeights:
    """Quantized layer. `tensors` are its stored tensors, by the ending of their names.

    `dense` are the weights that they stand for.
    """

    tensors: dict[str, Any]
    dense: Any


def int8(weight: Any, _inputs: Any) -> QuantizedWeights:
    """Quantize weights of shape (out, in) to 8 bits, with one scale for each output."""
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
    whole = torch.clamp(torch.round(weight / scale), -127, 127)
    return QuantizedWeights({"weight": whole.to(torch.int8), "weight_scale": scale}, whole * scale)


def broken(weight: Any, inputs: Any) -> QuantizedWeights:
    made = int8(weight, inputs)
    whole, scale = made.tensors["weight"], made.tensors["weight_scale"].roll(1, 0).contiguous()
    return QuantizedWeights({"weight": whole, "weight_scale": scale}, whole.float() * scale)


def fp8(weight: Any, _inputs: Any) -> QuantizedWeights:
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 448
    short = (weight / scale).to(torch.float8_e4m3fn)
    return QuantizedWeights({"weight": short, "weight_scale": scale}, short.float() * scale)


def int2(weight: Any, _inputs: Any) -> QuantizedWeights:
    """Quantize weights to four values in each group, by rounding. Always stored as 16-bit."""
    groups = weight.reshape(weight.shape[0], -1, GROUP)
    scale = groups.abs().amax(2, keepdim=True).clamp(min=1e-8) / 1.5
    whole = torch.clamp(torch.round(groups / scale - 0.5), -2, 1) + 0.5
    return QuantizedWeights({}, (whole * scale).reshape(weight.shape))


def gptq(weight: Any, inputs: Any) -> QuantizedWeights:
    """Quantize weights to 4 bits by GPTQ, column by column.

    Each column's rounding error is compensated in the columns after it.
    """
    left = weight.clone()
    inverse = _inverse(inputs)
    width = weight.shape[1]
    whole, scales = torch.zeros_like(weight), []
    for column in range(width):
        if column % GROUP == 0:
            most = left[:, column : column + GROUP].abs().amax(1)
            scales.append(most.clamp(min=1e-8) / 7)
        scale = scales[-1]
        whole[:, column] = torch.clamp(torch.round(left[:, column] / scale), -8, 7)
        error = (left[:, column] - whole[:, column] * scale) / inverse[column, column]
        left[:, column + 1 :] -= torch.outer(error, inverse[column, column + 1 :])
    scale = torch.stack(scales, 1)
    dense = whole * scale.repeat_interleave(GROUP, 1)
    groups, outputs = width // GROUP, weight.shape[0]
    tensors = {
        "qweight": _pack_values((whole + 8).T, 0, range(8)),
        "qzeros": _pack_values(
            torch.full((groups, outputs), 7.0), 1, range(8)
        ),  # the format stores zero points minus one
        "scales": scale.T.contiguous().half(),
        "g_idx": (torch.arange(width) // GROUP).int(),
    }
    return QuantizedWeights(tensors, dense)


def awq(weight: Any, _inputs: Any) -> QuantizedWeights:
    """Quantize weights to 4 bits between the minimum and maximum of each group.

    `rescale_weights` has to scale them before.
    """
    groups = weight.reshape(weight.shape[0], -1, GROUP)
    low, high = groups.amin(2, keepdim=True), groups.amax(2, keepdim=True)
    scale = (high - low).clamp(min=1e-8) / 15
    zero = torch.clamp(torch.round(-low / scale), 0, 15)
    whole = torch.clamp(torch.round(groups / scale) + zero, 0, 15)
    dense = ((whole - zero) * scale).reshape(weight.shape)
    tensors = {
        "qweight": _pack_values(whole.reshape(weight.shape).T, 1, _AWQ_ORDER),
        "qzeros": _pack_values(zero.squeeze(2).T, 1, _AWQ_ORDER),
        "scales": scale.squeeze(2).T.contiguous().half(),
    }
    return QuantizedWeights(tensors, dense)


METHODS: dict[str, Callable[[Any, Any], QuantizedWeights]] = {
    "int8": int8, "fp8": fp8, "gptq": gptq, "awq": awq, "broken": broken, "int2": int2,
}  # fmt: skip
_BY_NAME = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False,
             "sym": True},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True,
            "version": "gemm"},
}  # fmt: skip


def quantization_config(method: str) -> dict[str, Any]:
    """Return the member `quantization_config` of `config.json`."""
    if method in _BY_NAME:
        return _BY_NAME[method]
    kind = "float" if method == "fp8" else "int"
    both = {"num_bits": 8, "type": kind, "symmetric": True}
    group = {
        "targets": ["Linear"],
        "weights": both | {"strategy": "channel", "dynamic": False},
        "input_activations": both | {"strategy": "token", "dynamic": True},
    }
    return {
        "quant_method": "compressed-tensors", "format": f"{kind}-quantized",
        "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": group},
    }  # fmt: skip


def rescale_weights(weights: dict[str, Any], inputs: dict[str, Any], layers: int) -> None:
    """Scale weights in place for AWQ, so that the most important inputs get finer steps.

    The preceding layer or norm is scaled inversely. The exponent of the activations' size is chosen
    by the smallest output error.
    """
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for names, before in _TOGETHER:
            seen = inputs[at + names[0]]
            size = seen.abs().mean(0).clamp(min=1e-5)
            best, least = torch.ones_like(size), float("inf")
            for step in range(_STEPS + 1):
                scale = size ** (step / _STEPS)
                scale = scale / (scale.amax() * scale.amin()).sqrt()
                error = 0.0
                for name in names:
                    weight = weights[f"{at}{name}.weight"]
                    rounded = awq(weight * scale, None).dense / scale
                    error += float(((seen @ (rounded - weight).T) ** 2).mean())
                if error < least:
                    best, least = scale, error
            for name in names:
                weights[f"{at}{name}.weight"] *= best
            earlier = weights[f"{at}{before}.weight"]
            earlier /= best if earlier.dim() == 1 else best[:, None]
            inputs[at + names[0]] = seen / best


def observe_inputs(folder: Path, prompts: Path | None) -> dict[str, Any]:
    """Return the inputs of each linear layer, (rows, in), while the model answers the prompts."""
    if prompts is None:
        return {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    seen: dict[str, list[Any]] = {}

    def hook(name: str) -> Callable[..., None]:
        def keep(_: Any, given: Any, __: Any) -> None:
            seen.setdefault(name, []).append(given[0].reshape(-1, given[0].shape[-1]))

        return keep

    texts = []
    with torch.no_grad():
        for line in prompts.read_text(encoding="utf-8").splitlines():
            asked = [{"role": "user", "content": json.loads(line)["prompt"]}]
            ids = tokenizer.apply_chat_template(
                asked, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
            texts.append(model.generate(**ids, max_new_tokens=48, do_sample=False))
        for name, module in model.named_modules():
            if name.endswith(_LINEAR):
                module.register_forward_hook(hook(name))
        for text in texts:
            model(text)
    return {name: torch.cat(rows)[:_ROWS] for name, rows in seen.items()}


def quantize(folder: Path, out: Path, method: str, prompts: Path | None, *, dense: bool) -> int:
    """Write the quantized checkpoint into `out`. Return the bytes of its weights."""
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    weights = {name: tensor.float() for name, tensor in stored.items()}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    inputs = observe_inputs(folder, prompts)
    if method == "awq":
        rescale_weights(weights, inputs, config["num_hidden_layers"])
    found: dict[str, Any] = {}
    for name, weight in weights.items():
        layer = name.removesuffix(".weight")
        if not layer.endswith(_LINEAR):
            found[name] = weight.bfloat16()
            continue
        made = METHODS[method](weight, inputs.get(layer))
        if dense or not made.tensors:
            found[name] = made.dense.bfloat16()
        else:
            found |= {f"{layer}.{ending}": tensor for ending, tensor in made.tensors.items()}
    if not dense and method != "int2":
        config["quantization_config"] = quantization_config(method)
        if method in _BY_NAME:
            config["torch_dtype"] = "float16"  # type of the scales in these formats
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("*.py", "__pycache__", "training*"))
    path = out / "model.safetensors"
    safetensors.torch.save_file(
        {name: tensor.contiguous() for name, tensor in found.items()}, path, {"format": "pt"}
    )
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    return path.stat().st_size


def _inverse(inputs: Any) -> Any:
    """Return the upper Cholesky factor of the inverse of the inputs' second moments."""
    moments = inputs.double().T @ inputs.double()
    moments += _DAMP * moments.diagonal().mean() * torch.eye(len(moments), dtype=torch.float64)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    return torch.linalg.cholesky(inverse, upper=True).float()


def _pack_values(values: Any, along: int, order: Any) -> Any:
    """Return 4-bit numbers packed along an axis, eight in each 32-bit integer."""
    parts = values.long().unflatten(along, (-1, 8))
    total = sum(parts.select(along + 1, place) << (4 * shift) for shift, place in enumerate(order))
    return torch.where(total >= 1 << 31, total - (1 << 32), total).int().contiguous()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--prompts", type=Path, help="JSON lines; gptq and awq learn from them")
    parser.add_argument("--dense", action="store_true")
    given = parser.parse_args(arguments)
    if given.method in _BY_NAME and given.prompts is None:
        parser.error(f"{given.method} needs --prompts")
    torch.manual_seed(0)
    prompts = given.prompts if given.method in _BY_NAME else None
    size = quantize(given.model, given.out, given.method, prompts, dense=given.dense)
    sys.stdout.write(f"{given.out}: {given.method}, {size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
