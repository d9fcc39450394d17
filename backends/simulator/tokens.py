"""Tokenization of a simulated engine, whose tokenizer cuts a text into pieces of 4 bytes.

The paths are vLLM's, outside `/v1`. The id of the last piece keeps its leading zeros.
"""

from typing import Final

import msgspec

from backends.simulator import words
from backends.simulator.dialect import RefusedError, SimulatedRules, decode, model_of

DETOKENIZE: Final = "/detokenize"
_LONGEST = 2**32


def tokenize(body: bytes, rules: SimulatedRules) -> bytes:
    fields = decode(body)
    if "model" in fields:
        model_of(fields, rules)
    prompt, messages = fields.get("prompt"), fields.get("messages")
    if not isinstance(prompt, str) and not isinstance(messages, list):
        raise RefusedError("validation", "Field required: prompt", "body.prompt")
    text = prompt if isinstance(prompt, str) else msgspec.json.encode(messages).decode()
    tokens = tokens_of(text)
    answer = {"count": len(tokens), "max_model_len": rules.context_tokens, "tokens": tokens}
    return msgspec.json.encode(answer)


def detokenize(body: bytes, rules: SimulatedRules) -> bytes:
    fields = decode(body)
    if "model" in fields:
        model_of(fields, rules)
    tokens = fields.get("tokens")
    if not isinstance(tokens, list) or not all(
        isinstance(token, int) and 0 <= token < _LONGEST for token in tokens
    ):
        raise RefusedError("validation", "Field required: tokens", "body.tokens")
    return msgspec.json.encode({"prompt": text_of(tokens)})


def tokens_of(text: str) -> list[int]:
    data, size = text.encode(), words.TOKEN_BYTES
    return [int.from_bytes(data[place : place + size]) for place in range(0, len(data), size)]


def text_of(tokens: list[int]) -> str:
    size = words.TOKEN_BYTES
    pieces = [token.to_bytes(size, "big").lstrip(b"\0") for token in tokens]
    return b"".join(pieces).decode(errors="replace")
