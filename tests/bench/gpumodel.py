"""A model folder without weights: a real shape, and a tokenizer that makes a token of each word.

What an engine costs does not depend on the values of its weights, so `--load-format dummy` measures
like the model that has this shape. Prompts of N words are N tokens, which makes lengths exact.
"""

import json
import random
from pathlib import Path
from typing import Any

VOCABULARY = 32_000
# Many enough that no two prompts share a prefix block.
_PROMPT_WORDS = [f"word{number}" for number in range(250)]
_SPECIAL = ("<unk>", "<s>", "</s>")
# The words of the product's own probes, and those of the prompts here.
_WORDS = [
    *("load", "queue", "token", "cache", "model", "price", "stream", "answer", "router", "engine"),
    *("batch", "prompt", "latency", "budget", "hour", "machine", "volume", "ledger", "team"),
    *("request", "ready?"),
    *_PROMPT_WORDS,
]
# (hidden, intermediate, layers, heads, kv heads, context): the public shapes of Llama 2 70B and
# Llama 3 8B, one of a draft model, and one that a processor serves as well, to try the bench
# without a GPU.
SHAPES = {
    "70b": (8192, 28672, 80, 64, 8, 4096),
    "8b": (4096, 14336, 32, 32, 8, 8192),
    "1b": (2048, 5632, 22, 32, 4, 4096),
    "tiny": (128, 256, 2, 4, 2, 4096),
}
_LINEAR = [
    *(f"self_attn.{name}_proj" for name in "qkvo"),
    *(f"mlp.{name}_proj" for name in ("gate", "up", "down")),
]
# How weights are stored, as checkpoints of these formats say it; 4-bit ones in groups of 128.
WEIGHTS: dict[str, dict[str, Any]] = {
    "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3"},
    "fp8-static": {"quant_method": "fp8", "activation_scheme": "static", "fmt": "e4m3"},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True,
            "version": "gemm", "modules_to_not_convert": None},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True,
             "lm_head": False, "checkpoint_format": "gptq",
             "modules_in_block_to_quantize": [_LINEAR]},
    "w4a8": {"quant_method": "compressed-tensors", "format": "pack-quantized",
             "ignore": ["lm_head"], "config_groups": {"group_0": {
                 "targets": ["Linear"],
                 "weights": {"num_bits": 4, "type": "int", "symmetric": True, "dynamic": False,
                             "strategy": "group", "group_size": 128},
                 "input_activations": {"num_bits": 8, "type": "float", "symmetric": True,
                                       "dynamic": True, "strategy": "token"}}}},
}  # fmt: skip
_TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% endfor %}"


def make(folder: Path, shape: str, weights: str | None = None, layers: int | None = None) -> Path:
    """The folder, written anew; `weights` of `WEIGHTS`, `layers` for fewer of them."""
    hidden, intermediate, depth, heads, kv_heads, context = SHAPES[shape]
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers or depth,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "initializer_range": 0.02,
    }
    if weights is not None:
        config["quantization_config"] = WEIGHTS[weights]
        config["torch_dtype"] = "float16" if weights in {"awq", "gptq"} else "bfloat16"
    names = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "</s>",
        "chat_template": _TEMPLATE,
        "model_max_length": context,
    }
    for name, document in (
        ("config.json", config),
        ("tokenizer.json", _tokenizer()),
        ("tokenizer_config.json", names),
    ):
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return folder


def prompt(tokens: int) -> str:
    """That many tokens, unlike any other prompt."""
    return " ".join(random.choices(_PROMPT_WORDS, k=tokens))


def _tokenizer() -> dict[str, Any]:
    filler = VOCABULARY - len(_SPECIAL) - len(_WORDS)
    words = [*_SPECIAL, *_WORDS, *(f"w{number}" for number in range(filler))]
    special = [
        {
            "id": number, "content": word, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True,
        }
        for number, word in enumerate(_SPECIAL)
    ]  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": "<unk>",
        },
    }
