"""Maximum KV that sequences of known ends hold at once; each grows by a token a step."""

from collections.abc import Sequence

EXACT_RESIDENTS = 32  # up to which a peak is counted in blocks, beyond it bounded from above


def kv_peak_tokens(residents: Sequence[tuple[float, float, float]], block: int) -> float:
    """Return the most tokens that (held, final, slack) sequences hold at once.

    Tokens are in whole blocks. The sum falls only where a sequence ends, so the peak is at one of
    the ends. Where a sequence is not known exactly, its largest possible size and latest end are
    used.
    """
    ends = sorted((max(0.0, final - held), held + slack, final) for held, final, slack in residents)
    most = 0.0
    if len(ends) <= EXACT_RESIDENTS:
        for place, (steps, _, _) in enumerate(ends):
            rest = ends[place:]
            held_then = sum(kv_rounded(min(held + steps, final), block) for _, held, final in rest)
            most = max(most, held_then)
        return most
    held_by_rest = sum(held for _, held, _ in ends)
    for place, (steps, held, _) in enumerate(ends):
        rest_count = len(ends) - place
        most = max(most, held_by_rest + rest_count * (steps + block - 1))
        held_by_rest -= held
    return most


def kv_rounded(tokens: float, block: int) -> float:
    return (tokens + block - 1) // block * block
