"""Usage is found where providers put it, and added up where each choice tells its own."""

from contextlib import nullcontext

import msgspec
import pytest

from backends.answers import read_results
from backends.chunks import parse_answer
from backends.usage_bytes import UNREADABLE_USAGE
from backends.usage_places import BESIDE, counts_output, may_tell_more, sum_choices, usage_in
from ledger import usage_figures
from ledger.cache_conventions import Convention
from ledger.usage import tokens_from_usage
from ledger.usage_members import MEMBERS, UsageCount

RAW = {"prompt_tokens": 1, "completion_tokens": 2}
GEMINI = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}
BEDROCK = {"inputTokenCount": 10, "outputTokenCount": 5, "invocationLatency": 900}
LLAMA = {"prompt_n": 10, "prompt_ms": 4.5, "predicted_n": 5, "predicted_per_second": 40.0}


@pytest.mark.parametrize(
    ("answer", "usage"),
    [
        ({"usage": RAW, "usageMetadata": GEMINI}, {**RAW, BESIDE: [GEMINI]}),
        ({"usage": RAW, "x_groq": {"usage": RAW}, "timings": dict(RAW)}, RAW),
        ({"usage": RAW, "choices": [{"usage": RAW}, {"message": {"usage": RAW}}]},
         {**RAW, BESIDE: [{"prompt_tokens": 1, "completion_tokens": 4}]}),
        ({"choices": [{"usage": RAW, "delta": {"usage": GEMINI}}]}, {**RAW, BESIDE: [GEMINI]}),
        ({"usage": RAW, "perf_metrics": {"total_draft_tokens": 5}}, RAW),
        ({"choices": [{"message": {"usage": RAW}}]}, RAW),
        ({"choices": [{"delta": {"usage": RAW}}]}, RAW),
        ({"choices": [{"usage": None}, {"usage": RAW}]}, RAW),
        ({"choices": 5, "x_groq": {"id": "r", "usage": RAW}}, RAW),
        ({"usageMetadata": GEMINI}, GEMINI),
        ({"choices": [{"index": 0}], "usage_metadata": GEMINI}, GEMINI),
        ({"timings": LLAMA}, LLAMA),
        ({"amazon-bedrock-invocationMetrics": BEDROCK}, BEDROCK),
        ({"metrics": {"tokens": {"input_tokens": 1}}}, {"input_tokens": 1}),
        ({"meta": {"billed_units": {"input_tokens": 1, "output_tokens": 2}}},
         {"input_tokens": 1, "output_tokens": 2}),
        ({"meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 80}}},
         {"search_units": 1}),
        ({"usage": "lots"}, UNREADABLE_USAGE),
    ],
)  # fmt: skip
def test_usage_is_read_wherever_it_stands(answer: dict, usage: dict) -> None:
    assert usage_in(answer) == usage


def test_ollama_tells_its_counts_beside_the_message() -> None:
    told = {"prompt_eval_count": 3, "eval_count": 4}
    assert usage_in({"message": {"content": "a"}, **told}) == told
    assert usage_in({"usage": RAW, **told}) == {**RAW, BESIDE: [told]}


@pytest.mark.parametrize("places", [0, 1, 2_000])
def test_an_answer_that_may_count_elsewhere_is_told_by_its_bytes(places: int) -> None:
    data = {"data": [{"embedding": [0.25] * places}], "usage": {"prompt_tokens": 5}}
    usage = b'{"prompt_tokens":5}'
    body = msgspec.json.encode(data)
    assert not may_tell_more(body, usage)
    more = [{"x_groq": {"usage": RAW}}, {"usageMetadata": GEMINI}, {"timings": LLAMA}]
    assert all(may_tell_more(msgspec.json.encode(data | told), usage) for told in more)
    assert may_tell_more(body[:-1] + b',"x_groq":{"us\\u0061ge":{}}}', usage)


def test_the_ledger_knows_the_member_by_its_name() -> None:
    assert usage_figures.BESIDE == BESIDE


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"usage": None, "choices": [{"usage": {}}]},
        {"metadata": RAW},  # the request's own may come back
        {"choices": [{"message": {"content": RAW, "tool_calls": [RAW], "annotations": RAW}}]},
        {"x_groq": {"id": "r"}},
        {"x_groq": "r"},
        {"usage_policy": {"url": "https://e"}},
        {"choices": [{"logprobs": {"content": [{"token": "a"}]}}]},
    ],
)
def test_what_is_no_usage(answer: dict) -> None:
    assert usage_in(answer) is None


def test_choices_add_up_their_outputs_and_share_their_prompt() -> None:
    told = [
        {"prompt_tokens": 10, "completion_tokens": 100, "total_tokens": 110, "cached_tokens": 8,
         "completion_tokens_details": {"reasoning_tokens": 30}},
        {"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60, "cached_tokens": 8,
         "completion_tokens_details": {"reasoning_tokens": 5}},
    ]  # fmt: skip
    assert sum_choices(told) == {
        "prompt_tokens": 10, "completion_tokens": 150, "total_tokens": 160, "cached_tokens": 8,
        "completion_tokens_details": {"reasoning_tokens": 35},
    }  # fmt: skip
    assert usage_in({"choices": [{"usage": usage} for usage in told]}) == sum_choices(told)
    assert sum_choices(told[:1]) == told[0]


MADE = (UsageCount.COMPLETION, UsageCount.THOUGHT, UsageCount.THOUGHT_ANYWHERE,
        UsageCount.THOUGHT_BESIDE, UsageCount.AUDIO_OUT, UsageCount.IMAGE_OUT)  # fmt: skip


def nested(path: str) -> dict:
    first, _, rest = path.partition(".")
    return {first: nested(rest) if rest else 7}


@pytest.mark.parametrize("path", [path for path, meaning in MEMBERS.items() if meaning in MADE])
def test_every_count_of_output_that_the_ledger_reads_is_known_as_such(path: str) -> None:
    assert counts_output(nested(path))


@pytest.mark.parametrize("hold", [lambda value: {"a": value}, lambda value: [{"a": value}]])
def test_output_is_looked_for_no_deeper_than_usage_is(hold) -> None:
    value: object = 7
    for _ in range(4):
        value = hold(value)
    assert counts_output({"output": value})
    assert not counts_output({"output": hold(value)})


@pytest.mark.parametrize(
    "path", [path for path, meaning in MEMBERS.items() if meaning is UsageCount.PROMPT]
)
def test_a_count_of_a_prompt_is_no_output(path: str) -> None:
    assert not counts_output(nested(path))


@pytest.mark.parametrize(
    "read",
    [
        lambda body: parse_answer(b'{"choices":[{"index":0}],' + body).usage,
        lambda body: parse_answer(b'{"choices":[{"index":"0"}],' + body).usage,
        lambda body: read_results(b'{"data":[],' + body, "data").usage,
    ],
)
@pytest.mark.parametrize("last", [b'{"prompt_tokens":9,"completion_tokens":5}', b"null", b"{}"])
def test_usage_that_an_answer_has_twice_is_read_twice(read, last: bytes) -> None:
    usage = read(b'"usage":{"prompt_tokens":9,"completion_tokens":150},"usage":%b}' % last)
    with pytest.raises(usage_figures.UsageContradiction) if b"9" in last else nullcontext() as told:
        tokens = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert (told.value.most if b"9" in last else tokens).output == 150
