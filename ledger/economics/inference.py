"""The arithmetic of serving a model, for checking claims about speed and memory.

These formulas decide whether a claimed saving is possible: bytes of a KV cache, tokens per pass of
speculative decoding, the minimum time per token that memory bandwidth allows, and ratios. All of
them are exact for exact inputs.
"""

from fractions import Fraction

from ledger.economics.cost import Exact

MS_PER_S = 1000
BITS_PER_BYTE = 8
KEYS_AND_VALUES = 2


def kv_bytes_per_token(
    *, layers: int, kv_heads: int, head_dim: int, bytes_per_element: Exact
) -> Exact:
    """Return bytes of KV cache per token. With GQA, count `kv_heads`, not attention heads."""
    return KEYS_AND_VALUES * layers * kv_heads * head_dim * bytes_per_element


def kv_cache_bytes(*, bytes_per_token: Exact, tokens: int) -> Exact:
    return bytes_per_token * tokens


def tokens_per_pass(*, acceptance: Exact, drafted: int) -> Fraction:
    """Return expected tokens per pass of a target model that verifies `drafted` tokens.

    Drafted tokens count up to the first rejection, and the pass adds one: the geometric sum (1 -
    a^(k+1)) / (1 - a), not a x k.
    """
    if not 0 <= acceptance <= 1:
        raise ValueError("acceptance must be between 0 and 1")
    if acceptance == 1:
        return Fraction(drafted + 1)
    return (1 - Fraction(acceptance) ** (drafted + 1)) / (1 - Fraction(acceptance))


def bytes_per_parameter(*, bits: int) -> Fraction:
    return Fraction(bits, BITS_PER_BYTE)


def weight_bytes(*, parameters: Exact, bytes_per_parameter: Exact) -> Exact:
    return parameters * bytes_per_parameter


def read_ms(*, bytes_read: Exact, bytes_per_s: Exact) -> Fraction:
    """Return milliseconds to read bytes from memory, such as the weights at each decode step."""
    return Fraction(bytes_read) / Fraction(bytes_per_s) * MS_PER_S


def decode_tokens_per_s(*, batch: Exact, itl_ms: Exact) -> Fraction:
    """Return output tokens per second of a batch at one inter-token latency, without prefill."""
    return Fraction(batch) / Fraction(itl_ms) * MS_PER_S


def times(*, larger: Exact, smaller: Exact) -> Fraction:
    """Return the ratio of two figures: a speed-up, a growth or a saving factor."""
    return Fraction(larger) / Fraction(smaller)


def saved_share(*, before: Exact, after: Exact) -> Fraction:
    return 1 - Fraction(after) / Fraction(before)


def saved(*, before: Exact, after: Exact) -> Exact:
    return before - after


def aggregate_tokens_per_s(*, tokens_per_s_each: Exact, users: Exact) -> Exact:
    return tokens_per_s_each * users


def scaling_efficiency(*, before: Exact, after: Exact, times_the_gpus: Exact) -> Fraction:
    """Return the throughput gained per added GPU; 1 is linear."""
    return times(larger=after, smaller=before) / Fraction(times_the_gpus)
