"""What answers say they used is added up as a batch tells it, and is unknown where one does not."""

import json

import pytest
from openai.types.batch_usage import BatchUsage as ClientUsage

from gateway.batches.batch_usage import BatchUsage
from gateway.batches.shapes import LineResponse, answered_line

CHAT = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
RESPONSES = {
    "input_tokens": 7,
    "output_tokens": 3,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens_details": {"reasoning_tokens": 2},
}
EMBEDDINGS = {"prompt_tokens": 11, "total_tokens": 11}


def line(body: object) -> bytes:
    return answered_line("b", 1, "c", LineResponse(200, "r", json.dumps(body).encode()))


def counted(*bodies: object) -> dict[str, object] | None:
    usage, lines = BatchUsage(), [line(body) for body in bodies]
    assert list(usage.count(iter(lines))) == lines
    return usage.document()


def test_the_usage_of_every_dialect_is_added_up_as_clients_read_it() -> None:
    told = counted({"usage": CHAT}, {"usage": RESPONSES}, {"usage": EMBEDDINGS}, {"usage": CHAT})
    known = ClientUsage.model_validate(told, strict=True)
    assert (known.input_tokens, known.output_tokens, known.total_tokens) == (218, 43, 261)
    assert known.input_tokens_details.cached_tokens == 129
    assert known.output_tokens_details.reasoning_tokens == 12


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (
            {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5,
             "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}},
            (105, 90, 7, 3, 112),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 147,
             "completion_tokens_details": {"reasoning_tokens": 40}},
            (100, 0, 47, 40, 147),
        ),
    ],
)  # fmt: skip
def test_counts_that_stand_beside_others_are_added_to_them(usage, told) -> None:
    """Red before: a batch of messages had fewer input tokens than of them were cached."""
    known = ClientUsage.model_validate(counted({"usage": usage}), strict=True)
    cached, thought = known.input_tokens_details, known.output_tokens_details
    assert told == (
        known.input_tokens, cached.cached_tokens, known.output_tokens, thought.reasoning_tokens,
        known.total_tokens,
    )  # fmt: skip


def test_a_batch_without_answers_used_nothing() -> None:
    assert counted() == counted({"usage": {"prompt_tokens": 0}})


@pytest.mark.parametrize(
    "body",
    [{}, {"usage": None}, {"usage": {}}, {"usage": {"prompt_tokens": "9"}}, {"usage": [1]}, "text"],
)
def test_an_answer_that_does_not_say_it_makes_the_sum_unknown(body) -> None:
    assert counted({"usage": CHAT}, body, {"usage": CHAT}) is None


@pytest.mark.parametrize("odd", [b'"\xff"', b"[" * 3000 + b"]" * 3000, b"{"])
def test_an_answer_that_cannot_be_read_ends_no_batch(odd: bytes) -> None:
    """Red before: the batch could never be finished."""
    lines = [line({"usage": CHAT}), line({"usage": {"prompt_tokens": 5}}).replace(b"5", odd)]
    usage = BatchUsage()
    assert list(usage.count(iter(lines))) == lines
    assert usage.document() is None
