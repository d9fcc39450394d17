"""Output lengths of past requests, read from the ledger."""

from collections.abc import Iterable, Sequence

from gateway.control.estimate_resets import EstimateReset
from ledger.lengths import AnswerLength
from router.estimates import OutputLengths


def known_lengths(
    past: Iterable[AnswerLength], now_s: float, resets: Sequence[EstimateReset] = ()
) -> OutputLengths:
    """Return the lengths of past answers, so that a new worker need not assume the maximum.

    `past` is oldest first. Answers are weighted by their age at `now_s` (wall clock), and skipped
    if a later reset covers them.
    """
    lengths = OutputLengths()
    for length in past:
        lengths.age(length.opened_us / 1e6)
        if not any(is_forgotten(length, reset) for reset in resets):
            teach_length(lengths, length)
    lengths.age(now_s)
    return lengths


def is_forgotten(length: AnswerLength, reset: EstimateReset) -> bool:
    """Return whether the reset covers this answer."""
    return length.opened_us < reset.at_us and reset.covers(length.model, length.team_id)


def teach_length(lengths: OutputLengths, length: AnswerLength) -> None:
    """Add one past answer to `lengths`."""
    key = (length.model, length.team_id)
    lengths.observe(key, length.prompt_tokens, length.output_tokens, cut=length.cut)
