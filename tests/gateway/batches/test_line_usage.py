"""A line of a batch is booked by the rules of any answer."""

import json
from dataclasses import replace

import msgspec
import pytest

from gateway.batches.line_usage import line_overrun, line_usage, most_usage
from gateway.request.limit_overruns import LimitOverrun
from ledger.batches.outgoing import LineTerms, OutLine
from ledger.journals.records import TokenCounts

TERMS = LineTerms(n=2, most=120, told=True, prompt_bound=100, allowance=10, thinks=False)
LINE = OutLine(1, "a", "c", 1, 0, b'{"messages": []}', TERMS)
BODY = json.dumps({"choices": [{"message": {"content": "four words of text"}}]}).encode()


@pytest.mark.parametrize(
    ("usage", "disputed"), [(None, False), ({"prompt_tokens": -1}, True), ({"words": 7}, True)]
)
def test_without_usage_that_can_be_read_all_that_was_held_for_is_booked(usage, disputed) -> None:
    found = line_usage(LINE, usage, BODY)
    assert found == most_usage(TERMS)._replace(disputed=disputed)
    assert (found.tokens, found.unseen) == (TokenCounts(input=100, output=120), True)


def test_a_figure_that_is_too_low_for_the_text_is_not_believed() -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21}
    body = json.dumps({"choices": [{"message": {"content": "word " * 80}}]}).encode()
    found = line_usage(LINE, usage, body)
    assert (found.tokens.output, found.disputed) == (100, True)


@pytest.mark.parametrize(
    ("prompt", "context", "booked"), [(1, 0, 62), (1, 1, 1), (2, 0, 2), (40, 0, 40)]
)
def test_a_prompt_of_fewer_tokens_than_any_target_reads_is_estimated(
    prompt, context, booked
) -> None:
    """A lie of one token for any prompt was booked as it was told."""
    content = "x" * 200
    body = json.dumps({"messages": [{"role": "user", "content": content}]}).encode()
    line = OutLine(1, "a", "c", 1, 0, body, msgspec.structs.replace(TERMS, context=context))
    usage = {"prompt_tokens": prompt, "completion_tokens": 9}
    found = line_usage(line, usage, BODY)
    estimated = prompt == 1 and not context
    assert (found.tokens.prompt, found.disputed) == (booked, estimated)
    assert found.basis == ("estimated" if estimated else "reported")


def test_cached_tokens_beside_the_prompt_are_read_where_inside_they_cannot_be() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 80, "output_tokens": 9}
    found = line_usage(LINE, usage, BODY)
    assert (found.tokens, found.disputed) == (TokenCounts(10, 80, output=9), False)


@pytest.mark.parametrize(
    ("output", "reasoning", "overrun"),
    [(100, 0, None), (120, 100, LimitOverrun(10, is_text=False)), (120, 0, LimitOverrun(10, True))],
)
def test_an_overrun_is_of_a_choice_beyond_its_own_limit(output, reasoning, overrun) -> None:
    assert line_overrun(TERMS, TokenCounts(output=output, reasoning=reasoning)) == overrun


def test_terms_of_older_lines_believe_what_the_hold_covers() -> None:
    older = msgspec.convert({"n": 1, "most": 9000, "told": True, "prompt_bound": 9}, LineTerms)
    usage = {"prompt_tokens": 5, "completion_tokens": 8000, "total_tokens": 8005}
    line = OutLine(1, "a", "c", 1, 0, b'{"messages": []}', older)
    assert not line_usage(line, usage, BODY).disputed
    assert msgspec.convert(msgspec.to_builtins(TERMS), LineTerms) == TERMS


@pytest.mark.parametrize("usage", [{"total_tokens": 21}, {"prompt_tokens": 21, "total_tokens": 21}])
def test_an_embedding_is_booked_by_its_total_where_that_is_all_that_is_told(usage) -> None:
    """Red before: an honest line of Voyage was booked at its bound, and disputed."""
    line = replace(LINE, body=json.dumps({"input": "hello there " * 7}).encode())
    found = line_usage(line, usage, b'{"data": [{"embedding": [0.1]}]}')
    assert (found.tokens, found.basis, found.disputed) == (TokenCounts(21), "reported", False)
    assert line_usage(LINE, {"total_tokens": 21}, BODY).disputed, "of an answer in words"
