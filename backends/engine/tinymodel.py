"""Generator of a tiny Llama with random weights and its own tokenizer.

Its text is noise, but chat template, tools, grammars and usage behave as with a real checkpoint. It
uses the standard library only, needs no network, and takes about a second.

One hidden dimension is constant: every embedding has the same large value there, so that the
matching column of the output matrix acts as a bias per token. The bias suppresses special tokens,
stray bytes and white space, and lets answers end by end-of-turn. Without it, constrained JSON is
padded with white space until `max_tokens`.

To write the model: `python -m backends.engine.tinymodel DIRECTORY [--embedding]`.
"""

import argparse
import json
import math
import random
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.engine.tinytokenizer import SPECIAL, Vocabulary, tokenizer_files, train

WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class TinyModelShape:
    """Dimensions of the checkpoint. The defaults make about half a million parameters.

    An embedding model has the same layers without a head: vLLM pools its last hidden state.
    """

    layers: int = 2
    hidden: int = 128
    intermediate: int = 256
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    context_tokens: int = 8192
    embedding: bool = False


EMBEDDING = TinyModelShape(context_tokens=2048, embedding=True)


@dataclass(frozen=True, slots=True)
class TinyModel:
    directory: Path
    parameters: int
    vocabulary: int


def make(directory: Path, *, seed: int = 0, shape: TinyModelShape | None = None) -> TinyModel:
    """Write the checkpoint into `directory`. The same seed gives the same bytes."""
    shape = shape or TinyModelShape()
    vocabulary = train()
    directory.mkdir(parents=True, exist_ok=True)
    for name, document in tokenizer_files(vocabulary, shape.context_tokens).items():
        _write_json(directory / name, document)
    rng = random.Random(seed)  # noqa: S311  (weights, not secrets)
    parameters = _write_weights(directory / WEIGHTS, _tensors(shape, vocabulary, rng))
    # Written last: a directory with a config counts as a complete checkpoint.
    _write_json(directory / "generation_config.json", _generation(vocabulary))
    _write_json(directory / "config.json", _config(shape, vocabulary))
    return TinyModel(directory, parameters, len(vocabulary.tokens))


def is_complete(directory: Path) -> bool:
    return (directory / "config.json").is_file() and (directory / WEIGHTS).is_file()


_END_OF_TURN = "<|im_end|>"
_CONSTANT = 4.0  # value of the constant dimension in every embedding
_SIGNAL = 0.25  # standard deviation of the other dimensions
_NOISE_LOGITS = 1.2  # standard deviation of the logits' random part
_ANSWER_TOKENS = 64  # mean length of answers that end-of-turn's bias is set for
_STRING_TOKENS = 24  # the same for strings inside JSON
_RARE = -4.0  # logits of digits, punctuation and fragments: e^-4 of a word's weight
_SUPPRESSED = -12.0


def _config(shape: TinyModelShape, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "architectures": ["LlamaModel" if shape.embedding else "LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(vocabulary.tokens),
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": shape.context_tokens,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **_generation(vocabulary),
    }


def _generation(vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "bos_token_id": vocabulary.id_of("<|bos|>"),
        "eos_token_id": vocabulary.id_of(_END_OF_TURN),
        "pad_token_id": vocabulary.id_of("<|pad|>"),
    }


def _tensors(
    shape: TinyModelShape, vocabulary: Vocabulary, rng: random.Random
) -> Iterator[tuple[str, tuple[int, ...], list[float]]]:
    hidden, size = shape.hidden, len(vocabulary.tokens)
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    bias_gain = _norm_of_constant(hidden)

    def matrix(rows: int, columns: int, deviation: float) -> list[float]:
        return [rng.gauss(0.0, deviation) for _ in range(rows * columns)]

    embeddings = matrix(size, hidden, _SIGNAL)
    embeddings[::hidden] = [_CONSTANT] * size
    yield "model.embed_tokens.weight", (size, hidden), embeddings
    for layer in range(shape.layers):
        at = f"model.layers.{layer}."
        small = 1.0 / math.sqrt(hidden)
        yield at + "input_layernorm.weight", (hidden,), [0.0] + [1.0] * (hidden - 1)
        yield at + "self_attn.q_proj.weight", (queries, hidden), matrix(queries, hidden, small)
        yield at + "self_attn.k_proj.weight", (keys, hidden), matrix(keys, hidden, small)
        yield at + "self_attn.v_proj.weight", (keys, hidden), matrix(keys, hidden, small)
        yield at + "self_attn.o_proj.weight", (hidden, queries), _writes(rng, hidden, queries)
        yield at + "post_attention_layernorm.weight", (hidden,), [0.0] + [1.0] * (hidden - 1)
        inner = shape.intermediate
        yield at + "mlp.gate_proj.weight", (inner, hidden), matrix(inner, hidden, small)
        yield at + "mlp.up_proj.weight", (inner, hidden), matrix(inner, hidden, small)
        yield at + "mlp.down_proj.weight", (hidden, inner), _writes(rng, hidden, inner)
    if shape.embedding:
        # With the constant dimension all embeddings would be similar.
        yield "model.norm.weight", (hidden,), [0.0] + [1.0] * (hidden - 1)
        return
    yield "model.norm.weight", (hidden,), [1.0] * hidden
    head = matrix(size, hidden, _NOISE_LOGITS / (bias_gain / _CONSTANT * _SIGNAL * hidden**0.5))
    head[::hidden] = [bias / bias_gain for bias in token_biases(vocabulary)]
    yield "lm_head.weight", (size, hidden), head


def _norm_of_constant(hidden: int) -> float:
    """Return the final normalisation's value of the constant dimension, layers left out."""
    mean_square = (_CONSTANT**2 + (hidden - 1) * _SIGNAL**2) / hidden
    return _CONSTANT / math.sqrt(mean_square)


def _writes(rng: random.Random, hidden: int, columns: int) -> list[float]:
    """Return a matrix that adds to the residual stream, but never to its constant dimension."""
    deviation = 0.3 / math.sqrt(columns)
    return [0.0] * columns + [rng.gauss(0.0, deviation) for _ in range((hidden - 1) * columns)]


def token_biases(vocabulary: Vocabulary) -> list[float]:
    """Return a logit bias for each token.

    Words have 0, end-of-turn and quotes more, and tokens that must not appear far less. Quotes end
    a JSON string inside a grammar, which would otherwise run on.
    """
    weight = math.exp(_NOISE_LOGITS**2 / 2) * sum(
        _is_word(vocabulary, token) for token in vocabulary.tokens
    )
    quotes = sum(_opens_with_quote(vocabulary, token) for token in vocabulary.tokens)
    biases = []
    for token in vocabulary.tokens:
        text = vocabulary.text(token)
        if token == _END_OF_TURN:
            bias = math.log(weight / _ANSWER_TOKENS)
        elif token in SPECIAL or not text.isascii() or not text.isprintable() or text.isspace():
            bias = _SUPPRESSED
        elif _opens_with_quote(vocabulary, token):
            bias = math.log(weight / _STRING_TOKENS / quotes)
        elif _is_word(vocabulary, token):
            bias = 0.0
        else:
            bias = _RARE
        biases.append(bias)
    return biases


def _opens_with_quote(vocabulary: Vocabulary, token: str) -> bool:
    return vocabulary.text(token).startswith('"')


def _is_word(vocabulary: Vocabulary, token: str) -> bool:
    text = vocabulary.text(token)
    return token not in SPECIAL and text.startswith(" ") and text[1:].isalpha()


def _write_weights(path: Path, tensors: Iterator[tuple[str, tuple[int, ...], list[float]]]) -> int:
    """Write a safetensors file in bfloat16. Return the number of parameters.

    The format is the header's length, a JSON header, then the tensors' bytes.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name, shape, values in tensors:
        start = len(body)
        # bfloat16 is the upper half of a little-endian float32.
        wide = struct.pack(f"<{len(values)}f", *values)
        half = bytearray(2 * len(values))
        half[0::2], half[1::2] = wide[2::4], wide[3::4]
        body += half
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, len(body)]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + body)
    return len(body) // 2


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write a tiny random-weights Llama.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--embedding", action="store_true", help="an embedding model")
    given = parser.parse_args(arguments)
    shape = EMBEDDING if given.embedding else TinyModelShape()
    made = make(given.directory, seed=given.seed, shape=shape)
    sys.stdout.write(
        json.dumps(
            {
                "directory": str(made.directory),
                "parameters": made.parameters,
                "vocabulary": made.vocabulary,
            }
        )
        + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
