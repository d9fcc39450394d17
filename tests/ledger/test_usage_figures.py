"""Figures that contradict each other: the most of each count is kept, and that they do is told."""

import pytest

from ledger.cache_conventions import Convention
from ledger.journals.token_kinds import TokenCounts
from ledger.unit_usage import tokens_of_pictures, tokens_of_reranking, tokens_of_transcription
from ledger.usage import has_unread, other_reading, tokens_from_usage
from ledger.usage_figures import BESIDE, UsageContradiction, UsageError

T = TokenCounts
GROQ = {"prompt_tokens": 10, "completion_tokens": 95, "total_tokens": 105,
        "completion_tokens_details": {"reasoning_tokens": 70}}  # fmt: skip
LOW = {"prompt_tokens": 10, "completion_tokens": 22, "total_tokens": 32}


def chat(usage):
    return tokens_from_usage(usage, Convention.CACHED_INSIDE)


def most(read, usage) -> TokenCounts:
    with pytest.raises(UsageContradiction) as told:
        read(usage)
    return told.value.most


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({**LOW, BESIDE: [GROQ]}, T(10, output=95, reasoning=70)),
        ({**LOW, BESIDE: GROQ}, T(10, output=95, reasoning=70)),
        ({**LOW, BESIDE: [GROQ, {"prompt_tokens": 900}]}, T(900, output=95, reasoning=70)),
        ({**LOW, BESIDE: [{"promptTokenCount": -1}]}, T(10, output=22)),
        ({**LOW, BESIDE: [{**LOW, "num_search_queries": 4}]}, T(10, output=22, searches=4)),
        ({"prompt_tokens": "x", BESIDE: [LOW]}, T(10, output=22)),
        ({**LOW, BESIDE: [{**LOW, BESIDE: [GROQ]}]}, T(10, output=95, reasoning=70)),
    ],
)  # fmt: skip
def test_the_most_of_several_figures_is_kept_and_told_as_contradicting(usage, tokens) -> None:
    assert most(chat, usage) == tokens
    assert other_reading(usage) is None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({**GROQ, BESIDE: [LOW]}, T(10, output=95, reasoning=70)),
        ({**GROQ, BESIDE: [{"cost": 0.5}, {}]}, T(10, output=95, reasoning=70)),
        ({"cost": 0.5, BESIDE: [LOW]}, T(10, output=22)),
        # llama.cpp's times say what of the prompt was read anew, beside its usage.
        ({**LOW, "prompt_tokens_details": {"cached_tokens": 8},
          BESIDE: [{"cache_n": 8, "prompt_n": 2, "predicted_n": 22, "predicted_ms": 3.5}]},
         T(2, 8, output=22)),
    ],
)  # fmt: skip
def test_figures_that_another_one_covers_are_no_contradiction(usage, tokens) -> None:
    assert chat(usage) == tokens


def test_where_no_figure_is_one_nothing_is_read() -> None:
    with pytest.raises(UsageError) as told:
        chat({"prompt_tokens": "x", BESIDE: [{"prompt_tokens": -1}, 7]})
    assert not isinstance(told.value, UsageContradiction)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (LOW | {"total_tokens": 20}, T(10, output=22)),
        (LOW | {"total_tokens": 40, "completion_tokens_details": {"reasoning_tokens": 3}},
         T(10, output=30, reasoning=8)),
        (LOW | {"completion_tokens_details": {"reasoning_tokens": 80}},
         T(10, output=102, reasoning=80)),
        (LOW | {"completion_tokens_details": {"reasoning_tokens": 20, "audio_tokens": 9}},
         T(10, output=42, reasoning=20, audio_output=9)),
        (LOW | {"cached_tokens": 500}, T(10, 500, output=22)),
        (LOW | {"cached_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
         T(6, 4, output=22)),
        ({"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 30,
          "totalTokenCount": 20}, T(9, output=35, reasoning=30)),
    ],
)  # fmt: skip
def test_usage_that_contradicts_itself_has_the_most_of_it(usage, tokens) -> None:
    assert most(chat, usage) == tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        # Thoughts that cannot be inside of the completion, where no total says that they are.
        ({"prompt_tokens": 10, "completion_tokens": 5,
          "completion_tokens_details": {"reasoning_tokens": 80}}, T(10, output=85, reasoning=80)),
        ({"input_tokens": 10, "output_tokens": 5,
          "output_tokens_details": {"reasoning_tokens": 80}}, T(10, output=85, reasoning=80)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "reasoning_tokens": 80},
         T(10, output=85, reasoning=80)),
        ({"prompt_tokens": 10, "completion_tokens": 80,
          "completion_tokens_details": {"reasoning_tokens": 80}}, T(10, output=80, reasoning=80)),
    ],
)  # fmt: skip
def test_more_thoughts_than_completion_stand_beside_it(usage, tokens) -> None:
    assert chat(usage) == tokens


@pytest.mark.parametrize("read", [tokens_of_pictures, tokens_of_reranking, tokens_of_transcription])
def test_kinds_with_units_keep_the_most_as_well(read) -> None:
    low, high = {"prompt_tokens": 10, "completion_tokens": 5}, {"input_tokens": 900}
    assert most(read, {**low, BESIDE: [high]}).whole_prompt == 900
    assert read({**low, BESIDE: [low]}) == read(low)


def test_what_nobody_knows_beside_is_partly_read() -> None:
    assert not has_unread({**LOW, BESIDE: [GROQ]})
    assert has_unread({**LOW, BESIDE: [{**GROQ, "holograms": 3}]})


def test_figures_that_a_target_nests_are_bounded() -> None:
    """Red before: it was walked through by recursion, and the request was a 500."""
    usage = dict(LOW)
    for _ in range(5000):
        usage = {**LOW, BESIDE: [usage]}
    assert chat(usage) == T(10, output=22)
    assert not has_unread(usage)
