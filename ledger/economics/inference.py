"""The arithmetic of serving a model, for checking what is claimed about speed and memory.

These formulas decide whether a claimed saving can be true: bytes of a KV cache, tokens per pass of
speculative decoding, the floor that memory bandwidth puts under a token, and the ratios in which
such claims are worded. All of them are exact for exact inputs.
"""

from fractions import Fraction

from ledger.economics.cost import Exact

MS_PER_S = 1000
BITS_PER_BYTE = 8
KEYS_AND_VALUES = 2


def kv_bytes_per_token(
    *, layers: int, kv_heads: int, head_dim: int, bytes_per_element: Exact
) -> Exact:
    """Return bytes of KV cache that one token holds: `kv_heads`, not attention heads, under GQA."""
    return KEYS_AND_VALUES * layers * kv_heads * head_dim * bytes_per_element


def kv_cache_bytes(*, bytes_per_token: Exact, tokens: int) -> Exact:
    return bytes_per_token * tokens


def tokens_per_pass(*, acceptance: Exact, drafted: int) -> Fraction:
    """Return expected tokens of one pass of the target model that verifies `drafted` tokens.

    A draft counts up to its first rejection, and the pass itself adds one token: the geometric
    sum (1 - a^(k+1)) / (1 - a), never a x k.
    """
    if not 0 <= acceptance <= 1:
        raise ValueError("acceptance is a probability")
    if acceptance == 1:
        return Fraction(drafted + 1)
    return (1 - Fraction(acceptance) ** (drafted + 1)) / (1 - Fraction(acceptance))


def bytes_per_parameter(*, bits: int) -> Fraction:
    return Fraction(bits, BITS_PER_BYTE)


def weight_bytes(*, parameters: Exact, bytes_per_parameter: Exact) -> Exact:
    return parameters * bytes_per_parameter


def read_ms(*, bytes_read: Exact, bytes_per_s: Exact) -> Fraction:
    """Return milliseconds to read bytes from memory: the weights, once for every decoding step."""
    return Fraction(bytes_read) / Fraction(bytes_per_s) * MS_PER_S


def decode_tokens_per_s(*, batch: Exact, itl_ms: Exact) -> Fraction:
    """Output tokens per second of a batch at one inter-token latency, prefill not counted."""
    return Fraction(batch) / Fraction(itl_ms) * MS_PER_S


def times(*, larger: Exact, smaller: Exact) -> Fraction:
    """Return how many times one figure is another: a speed-up, a growth, a saving by a factor."""
    return Fraction(larger) / Fraction(smaller)


def saved_share(*, before: Exact, after: Exact) -> Fraction:
    return 1 - Fraction(after) / Fraction(before)


def saved(*, before: Exact, after: Exact) -> Exact:
    return before - after


def aggregate_tokens_per_s(*, tokens_per_s_each: Exact, users: Exact) -> Exact:
    return tokens_per_s_each * users


def scaling_efficiency(*, before: Exact, after: Exact, times_the_gpus: Exact) -> Fraction:
    """Return throughput gained per GPU added: 1 is linear."""
    return times(larger=after, smaller=before) / Fraction(times_the_gpus)
