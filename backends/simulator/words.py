"""A stand-in for a tokenizer, and a text generator that agrees with it exactly.

Every 4 bytes of UTF-8 are one token, for prompts and answers: without a vocabulary, any text can be
counted and cut into blocks by slicing. Answers are three-letter words with a leading space, one
token each, after the label `[simulated]:` (three tokens), which shows readers that no model wrote
them.
"""

import math
import zlib
from collections.abc import Sequence

TOKEN_BYTES = 4
LABEL = "[simulated]:"
_WORDS = (
    "the sun ran out and the old cat sat far off you can see how her red hat hid one big map but"
    " not all who try may win for now let him cut the ice dry the oak add two new eggs to its tin"
)
_ROUND = 1021  # a prime, so that the two strides below never meet


def _cycle() -> str:
    words = sorted({word for word in _WORDS.split() if len(word) == TOKEN_BYTES - 1})
    picked = [words[(i * i + 7 * i) % len(words)] for i in range(_ROUND)]
    return "".join(f" {word}" for word in picked)


_CYCLE = _cycle()


def count(data: bytes) -> int:
    """Return the number of tokens of a text."""
    return -(-len(data) // TOKEN_BYTES)


def block_hashes(data: bytes, *, block_tokens: int, salt: str = "") -> tuple[int, ...]:
    """Return chained hashes of a prompt's full blocks; equal prefixes have equal leading ones."""
    size = block_tokens * TOKEN_BYTES
    previous = hash(salt)
    hashes = []
    for start in range(0, len(data) - size + 1, size):
        previous = hash((previous, data[start : start + size]))
        hashes.append(previous)
    return tuple(hashes)


def seed_of(data: bytes, choice: int = 0) -> int:
    """Return the seed from which an answer to this prompt is generated."""
    return zlib.crc32(data, choice)


def natural_length(seed: int) -> int:
    """Return an answer's natural length: lognormal over seeds, median 180 tokens, sigma 0.6."""
    digits = [((seed >> shift) % 1000) / 1000 for shift in (0, 7, 14, 21)]
    standard = (sum(digits) - 2.0) * math.sqrt(3.0)  # four uniforms: mean 2, variance 1/3
    return max(4, round(180 * math.exp(0.6 * standard)))


def text(seed: int, tokens: int) -> str:
    """Return generated words of exactly `tokens` tokens."""
    body = tokens * TOKEN_BYTES - len(LABEL)
    if body <= 0:
        return LABEL[: tokens * TOKEN_BYTES]
    start = (seed % _ROUND) * TOKEN_BYTES
    rounds = -(-(start + body) // len(_CYCLE))
    return LABEL + (_CYCLE * rounds)[start : start + body]


def cut_text(whole: str, first: int, end: int) -> str:
    """Return the text of tokens `first` to `end` of an answer in ASCII."""
    return whole[first * TOKEN_BYTES : end * TOKEN_BYTES]


def find_stop(whole: str, stops: Sequence[str]) -> tuple[str, int, str] | None:
    """Return the text, tokens and stop string of the earliest stop; `None` without one."""
    found = [(whole.find(stop), stop) for stop in stops if stop]
    found = [(place, stop) for place, stop in found if place >= 0]
    if not found:
        return None
    place, stop = min(found)
    return whole[:place], count(whole[: place + len(stop)].encode()), stop
