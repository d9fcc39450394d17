"""Rounds of one answer: those in its totals, those beside them, and those of another model."""

import pytest

from ledger.cache_conventions import Convention
from ledger.usage import has_unread, tokens_from_usage
from ledger.usage_rounds import with_rounds

TOTALS = {"input_tokens": 60, "output_tokens": 20, "cache_read_input_tokens": 5}
TURN = {**TOTALS, "type": "message"}
COMPACTION = {
    "type": "compaction", "input_tokens": 4_000, "output_tokens": 900,
    "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0,
}  # fmt: skip
ADVICE = {"type": "advisor_message", "model": "other", "input_tokens": 9, "output_tokens": 3}


def test_usage_without_rounds_is_itself() -> None:
    assert with_rounds(TOTALS) is TOTALS


@pytest.mark.parametrize(
    ("rounds", "read", "unread"),
    [
        ([TURN], (60, 5, 20), False),  # red before: each such answer was partly read
        ([COMPACTION, TURN], (4_060, 105, 920), False),  # red before: it was free
        ([COMPACTION, COMPACTION], (8_060, 205, 1_820), False),
        ([TURN, ADVICE], (60, 5, 20), True),
        ([{**COMPACTION, "input_tokens": "many"}], (60, 5, 20), True),
        (
            [{**COMPACTION, "type": []}],
            (60, 5, 20),
            True,
        ),  # red before: it was no usage, but an error
        (["odd", 7], (60, 5, 20), True),
        ([], (60, 5, 20), False),
    ],
)
def test_a_compaction_is_billed_beside_the_totals(rounds, read, unread) -> None:
    usage = {**TOTALS, "iterations": rounds}
    found = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert (found.input, found.cached, found.output) == read
    assert has_unread(usage) is unread
    assert usage["iterations"] is rounds, "what came stays as it is"


def test_a_total_has_the_rounds_too() -> None:
    usage = {"input_tokens": 60, "output_tokens": 20, "total_tokens": 80}
    found = tokens_from_usage({**usage, "iterations": [COMPACTION]}, Convention.CACHED_INSIDE)
    assert (found.whole_prompt, found.output) == (4_160, 920)
