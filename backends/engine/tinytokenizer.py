"""Byte-level BPE tokenizer trained on a few sentences, in the `tokenizers` format.

Any text round-trips, since all 256 bytes are tokens. Common words of the corpus are one token, so
that bytes per token resemble a real tokenizer's for text about this product.
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SPECIAL = (
    "<|pad|>", "<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>",
)  # fmt: skip
# Tool marks stay in the text, where the engine's parser reads them.
_IN_TEXT = ("<tool_call>", "</tool_call>")

CHAT_TEMPLATE = """\
{%- macro text(content) -%}
{%- if content is string %}{{ content }}
{%- elif content %}{%- for part in content %}{{ part.text or '' }}{%- endfor %}{%- endif %}
{%- endmacro -%}
{%- if tools %}<|im_start|>system
You may call these functions:
{%- for tool in tools %}
{{ tool.function | tojson }}
{%- endfor %}
Answer a call as <tool_call>{"name": ..., "arguments": ...}</tool_call>.<|im_end|>
{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ text(message.content) }}
{%- for call in message.tool_calls or [] %}
<tool_call>{{ call.function | tojson }}</tool_call>
{%- endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""

CORPUS = """\
A gateway takes each request and asks where it should go. The answer depends on load, on latency
and on money. When the engine is idle the next token costs almost nothing, because the hour is
already paid. When the engine is full, one more request makes every other request wait, and then
an external provider is the better place even though it has a price.
The router keeps a small model of every engine: how many sequences run, how long their contexts
are, how much of the cache is free. From this it predicts the time to the first token and the time
between tokens. A prediction is compared with what happened, and the difference is learned.
The ledger writes one line for every attempt. It holds the tokens of the prompt, the tokens that
came from the cache, the tokens of the answer, the price that was valid then, and the cost. Every
hour the cost of the machines is shared between the teams that used them; what nobody used is idle.
The sum of all lines equals the sum of all invoices, to the last unit. If it does not, a check
says which line is wrong and why.
People who pay want to know whether their own machines are worth it. At a low volume they are not.
At a high volume they are. Between the two lies the volume at which both ways cost the same, and
that number is on the first page, beside the volume of today.
People who build software change one address and nothing else. Their calls look the same, their
tools work, their streams arrive word by word, and their errors have the same form as before.
People who run machines want to see why a request went where it went, what was rejected and for
which reason, and what a different policy would have done with the traffic of yesterday.
Please write a short answer. Tell me about the weather in Paris, London, Berlin, Tokyo and Madrid.
What is the best way to find out? Show the first three steps, then the result. Thank you very much!
Hello, how are you? I would like to know more about this. Could you explain it again, with an
example? Yes, of course. No, not yet. Maybe later. It was a good day, the sun was warm and we went
home before the rain came. She read a book, he made some tea, and the children played in the garden.
user assistant system tool function name arguments parameters type object string number boolean
{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}} {"answer": true}
{"name": "search", "arguments": {"query": "price of a token", "limit": 10}} {"items": [1, 2, 3]}
def add(left, right): return left + right # for x in range(10): if x != 0 and x < 5: print(x)
2024 2025 2026 10 20 50 100 200 500 1000 0.1 0.5 1.0 3.14 12:30 09:15 (one) [two] {three} <four>
"""

_VOCABULARY = 1024
# The same split as the `ByteLevel` pre-tokenizer applies: a word carries its leading space.
_WORD = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Vocabulary of a BPE tokenizer: tokens in id order, and the merges that make them.

    Tokens are spelled in the byte alphabet.
    """

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    _ids: dict[str, int] = field(repr=False, compare=False)

    def id_of(self, token: str) -> int:
        return self._ids[token]

    def text(self, token: str) -> str:
        """Return a token as text. Bytes that are not valid UTF-8 become U+FFFD."""
        if token in SPECIAL:
            return token
        byte_of = {spelled: byte for byte, spelled in _alphabet().items()}
        return bytes(byte_of[letter] for letter in token).decode("utf-8", "replace")


def train(corpus: str = CORPUS, size: int = _VOCABULARY) -> Vocabulary:
    """Train a vocabulary: merge the most frequent pairs until it has `size` tokens.

    Ties are broken by spelling, so that the result is always the same.
    """
    alphabet = _alphabet()
    counts = Counter(_WORD.findall(corpus))
    words = [([alphabet[byte] for byte in word.encode()], count) for word, count in counts.items()]
    tokens = [*SPECIAL, *sorted(alphabet.values())]
    merges: list[tuple[str, str]] = []
    while len(tokens) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        for letters, count in words:
            for pair in itertools.pairwise(letters):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        tokens.append("".join(best))
        for letters, _ in words:
            _merge(letters, best)
    ids = {token: number for number, token in enumerate(tokens)}
    return Vocabulary(tuple(tokens), tuple(merges), ids)


def tokenizer_files(vocabulary: Vocabulary, context_tokens: int) -> dict[str, dict[str, Any]]:
    """Return the content of `tokenizer.json` and `tokenizer_config.json`, by file name."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {token: number for number, token in enumerate(vocabulary.tokens)},
        "merges": [list(pair) for pair in vocabulary.merges],
    }  # fmt: skip
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [_added_token(vocabulary, token) for token in SPECIAL],
            "normalizer": None,
            "pre_tokenizer": {**byte_level, "use_regex": True},
            "post_processor": None,
            "decoder": {**byte_level, "use_regex": True},
            "model": model,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": context_tokens,
            "bos_token": "<|bos|>",
            "eos_token": "<|im_end|>",
            "pad_token": "<|pad|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    }


def _added_token(vocabulary: Vocabulary, token: str) -> dict[str, Any]:
    return {
        "id": vocabulary.id_of(token), "content": token, "single_word": False, "lstrip": False,
        "rstrip": False, "normalized": False, "special": token not in _IN_TEXT,
    }  # fmt: skip


def _merge(letters: list[str], pair: tuple[str, str]) -> None:
    index = 0
    while index < len(letters) - 1:
        if (letters[index], letters[index + 1]) == pair:
            letters[index : index + 2] = ["".join(pair)]
        index += 1


def _alphabet() -> dict[int, str]:
    """Return the letter of each byte: itself if printable, else a letter from U+0100 on.

    All byte-level tokenizers use this spelling, so the `ByteLevel` decoder understands it.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spelled = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in spelled)
    return spelled | {byte: chr(0x100 + place) for place, byte in enumerate(others)}
