"""Timed streams: what is read from them and what cannot be timed."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from backends.engine.probes import (
    ProbeError,
    ProbeStream,
    TokenMark,
    Workload,
    context_limit,
    free_kv_tokens,
    measure,
)
from backends.metrics import parse

WORKLOAD = Workload("http://engine/v1", "tiny", parse)


def client(handler) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(handler))


class Reads(httpx.AsyncByteStream):
    """A body that arrives in exactly these reads."""

    def __init__(self, reads: list[bytes]) -> None:
        self._reads = reads

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for read in self._reads:
            yield read


def events(*counts: int | None) -> list[bytes]:
    usages = [
        None if count is None else {"prompt_tokens": 7, "completion_tokens": count}
        for count in counts
    ]
    return [f"data: {json.dumps({'usage': usage})}\n\n".encode() for usage in usages]


def chunks(*counts: int | None) -> httpx.Response:
    return httpx.Response(200, stream=Reads([*events(*counts), b"data: [DONE]\n\n"]))


async def test_each_growth_of_usage_is_a_mark():
    async with client(lambda _: chunks(0, 1, None, 3, 3, 4)) as http:
        stream = await measure(http, WORKLOAD, prompt_words=5, output_tokens=4)
    assert stream.prompt_tokens == 7
    assert [mark.tokens for mark in stream.marks] == [1, 3, 4]
    assert stream.ttft_s > 0


async def test_what_comes_in_one_read_is_one_mark_and_a_split_line_is_joined():
    item, two, three, four = events(1, 2, 3, 4)
    reads = [item[:9], item[9:] + two + three, four]
    async with client(lambda _: httpx.Response(200, stream=Reads(reads))) as http:
        stream = await measure(http, WORKLOAD, prompt_words=5, output_tokens=4)
    assert [mark.tokens for mark in stream.marks] == [3, 4]


async def test_the_request_fixes_its_length_and_its_prompt_is_new_each_time():
    bodies = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return chunks(1)

    async with client(handler) as http:
        for _ in range(2):
            await measure(http, WORKLOAD, prompt_words=30, output_tokens=9)
    assert [body["max_tokens"] for body in bodies] == [9, 9]
    assert all(body["ignore_eos"] for body in bodies)
    assert bodies[0]["prompt"] != bodies[1]["prompt"]
    assert len(bodies[0]["prompt"].split()) == 30


def written(*texts: str, tokens: int) -> httpx.Response:
    """An engine that tells its usage once: each text is a chunk and a read of its own."""
    parts: list[dict] = [{"choices": [{"text": text}], "usage": None} for text in texts]
    usage = {"prompt_tokens": 7, "completion_tokens": tokens}
    lines = [*parts, {"choices": [], "usage": usage}]
    return httpx.Response(
        200, stream=Reads([f"data: {json.dumps(line)}\n\n".encode() for line in lines])
    )


@pytest.mark.parametrize(
    ("texts", "tokens", "marks"),
    [
        (("a", "b", "c"), 3, [1, 2, 3]),
        (("a", "", "b", "c", "d"), 5, [1, 2, 4, 5]),  # a part of a letter came with the next
        (("a",), 1, [1]),
    ],
)
async def test_an_engine_that_tells_its_usage_once_is_timed_by_its_chunks(texts, tokens, marks):
    async with client(lambda _: written(*texts, tokens=tokens)) as http:
        stream = await measure(http, WORKLOAD, prompt_words=5, output_tokens=tokens)
    assert [mark.tokens for mark in stream.marks] == marks
    assert stream.prompt_tokens == 7


@pytest.mark.parametrize(("texts", "tokens"), [(("abc",), 3), (("a", "b", "c"), 2), ((), 5)])
async def test_chunks_that_are_no_tokens_time_nothing(texts, tokens):
    async with client(lambda _: written(*texts, tokens=tokens)) as http:
        with pytest.raises(ProbeError, match="only at the end"):
            await measure(http, WORKLOAD, prompt_words=5, output_tokens=tokens)


def test_tokens_at_a_time_are_those_that_had_arrived():
    stream = ProbeStream(7, (TokenMark(1.0, 1), TokenMark(2.0, 5)), 0.0)
    assert [stream.tokens_at(at_s) for at_s in (0.9, 1.0, 1.9, 2.0, 9.0)] == [0, 1, 1, 5, 5]


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(400, json={"error": "too long"}), "400 .*too long"),
        (chunks(None, None), "has no usage"),
        (httpx.Response(200, text="data: {oops\n\n"), "JSONDecodeError"),
    ],
)
async def test_what_cannot_be_timed_is_refused(response, message):
    async with client(lambda _: response) as http:
        with pytest.raises(ProbeError, match=message):
            await measure(http, WORKLOAD, prompt_words=1, output_tokens=1)


@pytest.mark.parametrize(
    ("models", "limit"),
    [
        ([{"id": "tiny", "max_model_len": 4096}], 4096),
        ([{"id": "other", "max_model_len": 9}, {"id": "tiny", "max_model_len": 4096}], 4096),
        ([{"id": "other", "max_model_len": 9}, {"id": "tiny"}], None),
        ([{"id": "/models/by-another-name", "max_model_len": 4096}], 4096),
        ([{"id": "tiny"}], None),
        ([], None),
    ],
)
async def test_the_context_limit_is_the_engines_own(models, limit):
    async with client(lambda _: httpx.Response(200, json={"data": models})) as http:
        assert await context_limit(http, WORKLOAD) == limit


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500, text="no"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"data": None}),
        httpx.Response(200, json={"data": ["tiny"]}),
        httpx.Response(200, json={"data": [{"id": "tiny", "max_model_len": "long"}]}),
        httpx.Response(200, json={"data": [{"id": "tiny", "max_model_len": [1]}]}),
    ],
)
async def test_a_model_list_that_is_none_is_refused(answer):
    async with client(lambda _: answer) as http:
        with pytest.raises(ProbeError, match="/models"):
            await context_limit(http, WORKLOAD)


PAGE = """\
vllm:num_requests_running{{engine="0"}} {running}
vllm:num_requests_waiting{{engine="0"}} {waiting}
vllm:num_preemptions_total{{engine="0"}} 0
vllm:prompt_tokens_total{{engine="0"}} 5
vllm:generation_tokens_total{{engine="0"}} 5
vllm:kv_cache_usage_perc{{engine="0"}} 0.25
vllm:cache_config_info{{block_size="16",engine="0",num_gpu_blocks="101"}} 1
"""


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (httpx.Response(200, text=PAGE.format(running=0, waiting=0)), 1200),
        (httpx.Response(200, text=PAGE.format(running=1, waiting=0)), 0),  # others use it
        (httpx.Response(200, text=PAGE.format(running=0, waiting=2)), 0),
        (httpx.Response(200, text="nothing of this kind"), 0),
        (httpx.Response(404), 0),
    ],
)
async def test_free_kv_cache_is_what_the_engine_says_while_nobody_uses_it(answer, tokens):
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return answer

    async with client(handler) as http:
        assert await free_kv_tokens(http, WORKLOAD) == tokens
    assert asked == ["http://engine/metrics"]
