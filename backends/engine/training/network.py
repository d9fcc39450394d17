"""Llama of a few million parameters in plain torch, for training, saved as a checkpoint.

It has rotary positions, grouped queries and tied embeddings, and no KV cache. Tensors have the
names and layout that Transformers and vLLM load.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

nn: Any = torch.nn
functional = nn.functional


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Size of a network. Widths suit a GPU's 4-bit kernels: inputs in 128s, outputs in 64s."""

    vocabulary: int = 3072
    hidden: int = 256
    intermediate: int = 384
    layers: int = 4
    heads: int = 8
    kv_heads: int = 2
    context: int = 4096

    @property
    def head(self) -> int:
        return self.hidden // self.heads


SMALL = NetworkSize()  # 2.6 million parameters, the shipped model
LARGE = NetworkSize(16384, 768, 2048, 12, 12, 4, 2048)  # 88 million parameters: minutes on a GPU
THETA = 10000.0
EPSILON = 1e-5


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)
        return (scaled * self.weight).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, size: NetworkSize) -> None:
        super().__init__()
        self.size = size
        keys = size.kv_heads * size.head
        self.q_proj = nn.Linear(size.hidden, size.hidden, bias=False)
        self.k_proj = nn.Linear(size.hidden, keys, bias=False)
        self.v_proj = nn.Linear(size.hidden, keys, bias=False)
        self.o_proj = nn.Linear(size.hidden, size.hidden, bias=False)

    def forward(self, x: Any, turn: tuple[Any, Any]) -> Any:
        rows, length, _ = x.shape
        size = self.size

        def heads(of: Any, count: int) -> Any:
            return of.view(rows, length, count, size.head).transpose(1, 2)

        queries = _rotate_halves(heads(self.q_proj(x), size.heads), turn)
        keys = _rotate_halves(heads(self.k_proj(x), size.kv_heads), turn)
        times = size.heads // size.kv_heads
        keys = keys.repeat_interleave(times, 1)
        values = heads(self.v_proj(x), size.kv_heads).repeat_interleave(times, 1)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(rows, length, size.hidden))


class Mlp(nn.Module):
    def __init__(self, size: NetworkSize) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(size.hidden, size.intermediate, bias=False)
        self.up_proj = nn.Linear(size.hidden, size.intermediate, bias=False)
        self.down_proj = nn.Linear(size.intermediate, size.hidden, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, size: NetworkSize, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.input_layernorm = Norm(size.hidden)
        self.self_attn = Attention(size)
        self.post_attention_layernorm = Norm(size.hidden)
        self.mlp = Mlp(size)

    def forward(self, x: Any, turn: tuple[Any, Any]) -> Any:
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), turn))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Llama(nn.Module):
    """Llama network. `forward` takes token ids of shape (rows, length + 1).

    It returns the mean loss in nats per token.
    """

    def __init__(self, size: NetworkSize, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = size
        self.embed_tokens = nn.Embedding(size.vocabulary, size.hidden)
        self.layers = nn.ModuleList(Block(size, dropout) for _ in range(size.layers))
        self.norm = Norm(size.hidden)
        cosine, sine = _positions(size)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                written = name.endswith(("o_proj.weight", "down_proj.weight"))
                deviation = 0.02 / (math.sqrt(2 * size.layers) if written else 1.0)
                nn.init.normal_(weight, std=deviation)

    def forward(self, tokens: Any) -> Any:
        x = self.embed_tokens(tokens[:, :-1])
        length = x.shape[1]
        turn = self.cosine[:length].to(x.dtype), self.sine[:length].to(x.dtype)
        for layer in self.layers:
            x = layer(x, turn)
        logits = functional.linear(self.norm(x), self.embed_tokens.weight)
        return functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())


def _positions(size: NetworkSize) -> tuple[Any, Any]:
    frequencies = THETA ** -(torch.arange(0, size.head, 2).float() / size.head)
    angles = torch.outer(torch.arange(size.context).float(), frequencies)
    both = torch.cat((angles, angles), -1)
    return both.cos(), both.sin()


def _rotate_halves(x: Any, turn: tuple[Any, Any]) -> Any:
    """Rotate each head. Its halves are the real and the imaginary parts."""
    first, second = x.chunk(2, -1)
    cosine, sine = turn
    return x * cosine + torch.cat((-second, first), -1) * sine


def checkpoint(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors under a checkpoint's names, in bfloat16 on the CPU."""
    return {
        f"model.{name}": tensor.detach().to("cpu", torch.bfloat16).contiguous()
        for name, tensor in weights.items()
    }


def config(size: NetworkSize, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return the content of `config.json`. `ids` are the ids of the bos, eos and pad tokens."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": size.vocabulary,
        "hidden_size": size.hidden,
        "intermediate_size": size.intermediate,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.kv_heads,
        "head_dim": size.head,
        "max_position_embeddings": size.context,
        "rms_norm_eps": EPSILON,
        "rope_theta": THETA,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        **ids,
    }
