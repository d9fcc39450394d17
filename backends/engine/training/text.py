"""Tokens of the corpus: a tokenizer trained on it, and streams to draw training rows from."""

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from backends.engine.tinytokenizer import CHAT_TEMPLATE, SPECIAL

KINDS = ("chat", "topic", "source")
_IN_TEXT = ("<tool_call>", "</tool_call>")
_END = "<|eos|>"
_TOKENIZER_CHARACTERS = 40_000_000  # of a longer corpus a sample of documents is used


@dataclass(frozen=True, slots=True)
class TokenStream:
    """Tokens of one kind of document. `starts` are the positions at which a row may begin.

    They are the beginnings of documents, and further positions in long ones.
    """

    tokens: Any
    starts: Any


@dataclass(frozen=True, slots=True)
class TrainingText:
    """Tokenized corpus: streams for training and for evaluation, by kind.

    `bytes_per_token` is measured on the held-out documents.
    """

    tokenizer: Any
    learned: dict[str, TokenStream]
    held_out: dict[str, TokenStream]
    bytes_per_token: dict[str, float]


def read(corpus: Path, vocabulary: int) -> TrainingText:
    with lzma.open(corpus, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    plain = [_plain(line) for line in found if not line["held_out"]]
    every = 1 + sum(map(len, plain)) // _TOKENIZER_CHARACTERS
    tokenizer = _tokenizer(plain[::every], vocabulary)
    learned: dict[str, TokenStream] = {}
    kept: dict[str, TokenStream] = {}
    ratio: dict[str, float] = {}
    for kind in KINDS:
        for held_out, streams in ((False, learned), (True, kept)):
            of = [line for line in found if line["kind"] == kind and line["held_out"] == held_out]
            streams[kind] = _stream(tokenizer, [as_text(item) for item in of])
        size = sum(
            len(as_text(line).encode())
            for line in found
            if line["held_out"] and line["kind"] == kind
        )
        ratio[kind] = size / max(len(kept[kind].tokens), 1)
    return TrainingText(tokenizer, learned, kept, ratio)


def as_text(document: dict[str, Any]) -> str:
    """Return the text that the model sees: a chat in the chat template, else the document."""
    if document["kind"] == "chat":
        return (
            f"<|im_start|>user\n{document['question']}<|im_end|>\n"
            f"<|im_start|>assistant\n{document['text']}<|im_end|>\n"
        )
    return f"{document['text']}{_END}"


def save_tokenizer(text: TrainingText, folder: Path, context: int) -> dict[str, int]:
    """Write `tokenizer.json` and its configuration. Return the special ids for `config.json`."""
    text.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": "<|bos|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|pad|>",
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    _write(folder / "tokenizer_config.json", told)
    ids = {"bos_token_id": "<|bos|>", "eos_token_id": "<|im_end|>", "pad_token_id": "<|pad|>"}
    return {name: text.tokenizer.token_to_id(token) for name, token in ids.items()}


def _plain(document: dict[str, Any]) -> str:
    return f"{document['question']}\n{document['text']}"


def _tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Train a byte-level BPE tokenizer, like `backends.engine.tinytokenizer`, in native code."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Tool marks stay in the answer's text, where the engine's parser reads them.
    whole = json.loads(tokenizer.to_str())
    for token in whole["added_tokens"]:
        token["special"] = token["content"] not in _IN_TEXT
    return tokenizers.Tokenizer.from_str(json.dumps(whole))


def _stream(tokenizer: Any, texts: list[str]) -> TokenStream:
    starts: list[int] = []
    parts = [np.zeros(0, np.int64)]
    at = 0
    for first in range(0, len(texts), _ENCODED_AT_ONCE):  # encodings take much memory
        some = texts[first : first + _ENCODED_AT_ONCE]
        for item in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            ids = np.array(item.ids, np.int64)
            starts.extend(_starts(at, len(ids)))
            at += len(ids)
            parts.append(ids)
    return TokenStream(np.concatenate(parts), np.array(starts, np.int64))


_STRIDE = 512
_ENCODED_AT_ONCE = 2000


def _starts(at: int, length: int) -> Iterator[int]:
    yield at
    yield from range(at + _STRIDE, at + length - _STRIDE // 2, _STRIDE)


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
