"""Usage as providers write it, read right; a number that nobody knows is told.

Shapes are those of the providers' own documentation and of reports about them, with numbers of
their own. `PARTLY` is what is not read and stays visible.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cache_conventions import Convention
from ledger.journals.token_kinds import TokenCounts
from ledger.unit_usage import tokens_of_embedding
from ledger.usage import has_unread, tokens_from_usage
from ledger.usage_figures import UsageError
from ledger.usage_members import MEMBERS, UsageCount, leaves, unread

OUTSIDE = Convention.CACHED_OUTSIDE
Shape = dict[str, Any]


def openai(prompt: int, completion: int, **more: Any) -> Shape:
    whole = {"prompt_tokens": prompt, "completion_tokens": completion}
    return whole | {"total_tokens": prompt + completion} | more


def details(side: str = "prompt", **counts: int | None) -> Shape:
    return {f"{side}_tokens_details": counts}


T = TokenCounts
READ: dict[str, tuple[Shape, TokenCounts]] = {
    "perplexity: deep research": (
        openai(20, 300, citation_tokens=7000, num_search_queries=18, reasoning_tokens=73_000),
        TokenCounts(input=7020, output=73_300, reasoning=73_000, searches=18)),
    "perplexity: deep research, the documentation's own": (
        openai(33, 11_395, citation_tokens=19_028, num_search_queries=21, reasoning_tokens=193_947,
               cost={"reasoning_tokens_cost": 0.582, "total_cost": 0.816}),
        TokenCounts(input=19_061, output=205_342, reasoning=193_947, searches=21)),
    "perplexity: fewer thoughts than words are beside them, too": (
        openai(20, 9000, citation_tokens=7000, num_search_queries=3, reasoning_tokens=6000),
        TokenCounts(input=7020, output=15_000, reasoning=6000, searches=3)),
    "perplexity: the same through LiteLLM": (
        openai(20, 9000, citation_tokens=7000, num_search_queries=3)
        | details("completion", reasoning_tokens=6000),
        TokenCounts(input=7020, output=15_000, reasoning=6000, searches=3)),
    "sglang: as many thoughts are inside": (
        openai(20, 9000, reasoning_tokens=6000), TokenCounts(20, output=9000, reasoning=6000)),
    "bedrock: written tokens by how long they are kept": (
        {"inputTokens": 10, "outputTokens": 5, "totalTokens": 75, "cacheReadInputTokens": 40,
         "cacheWriteInputTokens": 20,
         "cacheDetails": [{"ttl": "1h", "inputTokens": 15}, {"ttl": "5m", "inputTokens": 5}]},
        T(10, 40, 5, 15, output=5)),
    "perplexity: cached and written tokens by Anthropic's names in the details": (
        {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105,
         "input_tokens_details": {
             "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}},
        T(10, 60, 30, output=5)),
    "openai: plain": (openai(9, 12), T(9, output=12)),
    "openai: all details of zeros": (
        openai(19, 10)
        | details(cached_tokens=0, audio_tokens=0)
        | details("completion", reasoning_tokens=0, audio_tokens=0, accepted_prediction_tokens=0,
                  rejected_prediction_tokens=0),
        T(19, output=10)),
    "openai: cached": (openai(2006, 300) | details(cached_tokens=1920), T(86, 1920, output=300)),
    "openai: reasoning": (
        openai(81, 1035) | details("completion", reasoning_tokens=832),
        T(81, output=1035, reasoning=832)),
    "openai: sound both ways": (
        openai(100, 90)
        | details(text_tokens=20, audio_tokens=80, image_tokens=0)
        | details("completion", text_tokens=30, audio_tokens=60),
        T(20, output=90, audio_input=80, audio_output=60)),
    "openai: a picture made": (
        openai(12, 1300) | details("completion", image_tokens=1290),
        T(12, output=1300, image_output=1290)),
    "openai: pictures of the images endpoint": (
        {"input_tokens": 50, "output_tokens": 4160, "total_tokens": 4210,
         "input_tokens_details": {"text_tokens": 10, "image_tokens": 40},
         "output_tokens_details": {"text_tokens": 0, "image_tokens": 4160}},
        T(50, output=4160, image_output=4160)),
    "gemini: pictures, sound and thoughts": (
        {"promptTokenCount": 40, "candidatesTokenCount": 1400, "thoughtsTokenCount": 100,
         "totalTokenCount": 1540,
         "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10},
                                 {"modality": "AUDIO", "tokenCount": 30}],
         "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 60},
                                     {"modality": "IMAGE", "tokenCount": 700},
                                     {"modality": "IMAGE", "tokenCount": 590},
                                     {"modality": "AUDIO", "tokenCount": 50}]},
        T(10, output=1500, reasoning=100, audio_input=30, audio_output=50, image_output=1290)),
    "openai: a prediction": (
        openai(500, 70)
        | details("completion", accepted_prediction_tokens=40, rejected_prediction_tokens=20),
        T(500, output=70)),
    "openai: embedding": ({"prompt_tokens": 8, "total_tokens": 8}, T(8)),
    "openai: responses": (
        {"input_tokens": 328, "input_tokens_details": {"cached_tokens": 128},
         "output_tokens": 52, "output_tokens_details": {"reasoning_tokens": 12},
         "total_tokens": 380},
        T(200, 128, output=52, reasoning=12)),
    "openai: responses that write a cache": (
        {"input_tokens": 328,
         "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 28},
         "output_tokens": 5, "total_tokens": 333},
        T(200, 100, 28, output=5)),
    "azure: content filtered": (openai(11, 0), T(11)),
    "azure: cached and thought": (
        openai(1566, 1518)
        | details(audio_tokens=None, cached_tokens=1408)
        | details("completion", audio_tokens=None, reasoning_tokens=576),
        T(158, 1408, output=1518, reasoning=576)),
    "anthropic: compatible endpoint": (
        openai(20, 10) | {"completion_tokens_details": None, "prompt_tokens_details": None},
        T(20, output=10)),
    "litellm: anthropic's cache": (
        openai(1100, 20) | details(cached_tokens=900)
        | {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 900},
        T(100, 900, 100, output=20)),
    "litellm: writes by age": (
        openai(300, 5)
        | {"cache_creation_input_tokens": 200, "cache_read_input_tokens": 0,
           "prompt_tokens_details": {
               "cached_tokens": 0, "cache_creation_tokens": 200,
               "cache_creation_token_details": {"ephemeral_5m_input_tokens": 50,
                                                "ephemeral_1h_input_tokens": 150}}},
        T(100, 0, 50, 150, output=5)),
    "gemini: compatible, thoughts in the total": (
        openai(7, 20) | {"total_tokens": 127}, T(7, output=120, reasoning=100)),
    "gemini: compatible, thoughts told": (
        openai(7, 20, total_tokens=127) | details("completion", reasoning_tokens=100),
        T(7, output=120, reasoning=100)),
    "gemini: its own": (
        {"promptTokenCount": 264, "candidatesTokenCount": 80, "totalTokenCount": 344,
         "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 6},
                                 {"modality": "IMAGE", "tokenCount": 258}],
         "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 80}]},
        T(264, output=80)),
    "gemini: its own, with thoughts": (
        {"promptTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 300,
         "totalTokenCount": 330}, T(10, output=320, reasoning=300)),
    "gemini: its own, cached": (
        {"promptTokenCount": 5000, "cachedContentTokenCount": 4000, "candidatesTokenCount": 50,
         "totalTokenCount": 5050,
         "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 4000}]},
        T(1000, 4000, output=50)),
    "gemini: its own, tools that read": (
        {"promptTokenCount": 40, "toolUsePromptTokenCount": 9000, "candidatesTokenCount": 60,
         "thoughtsTokenCount": 15, "totalTokenCount": 9115},
        T(9040, output=75, reasoning=15)),
    "litellm of gemini: tools that read, inside the prompt": (
        openai(9040, 75) | {"total_tokens": 9115}
        | details(tool_use_tokens=9000) | details("completion", reasoning_tokens=15),
        T(9040, output=75, reasoning=15)),
    "litellm of gemini: searches that read, beside the prompt": (
        openai(40, 60) | {"total_tokens": 9100} | details(tool_use_tokens=9000),
        T(9040, output=60)),
    "deepseek: hits and misses": (
        openai(1000, 50, prompt_cache_hit_tokens=896, prompt_cache_miss_tokens=104),
        T(104, 896, output=50)),
    "deepseek: reasoner": (
        openai(1000, 500, prompt_cache_hit_tokens=0, prompt_cache_miss_tokens=1000)
        | details(cached_tokens=0) | details("completion", reasoning_tokens=400),
        T(1000, output=500, reasoning=400)),
    "kimi: cached at the top": (openai(1000, 5, cached_tokens=900), T(100, 900, output=5)),
    "kimi: cached twice": (
        openai(1000, 5, cached_tokens=900) | details(cached_tokens=900), T(100, 900, output=5)),
    "dashscope: plain": (openai(22, 17) | details(cached_tokens=0), T(22, output=17)),
    "dashscope: explicit cache written": (
        openai(2000, 5)
        | {"prompt_tokens_details": {
            "cached_tokens": 0, "cache_creation_input_tokens": 1800, "cache_type": "ephemeral",
            "cache_creation": {"ephemeral_5m_input_tokens": 1800}}},
        T(200, 0, 1800, output=5)),
    "dashscope: cache written, no split": (
        openai(2000, 5)
        | {"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 1800,
                                     "cache_type": "ephemeral"}},
        T(200, 0, 1800, output=5)),
    "dashscope: omni": (
        openai(1000, 60)
        | details(text_tokens=100, audio_tokens=300, image_tokens=400, video_tokens=200)
        | details("completion", text_tokens=20, audio_tokens=40),
        T(700, output=60, audio_input=300, audio_output=40)),
    "dashscope: thinking": (
        openai(24, 500) | details("completion", reasoning_tokens=450, text_tokens=50),
        T(24, output=500, reasoning=450)),
    "xai: thinking beside the completion": (
        {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135, "num_sources_used": 0}
        | details(text_tokens=32, audio_tokens=0, image_tokens=0, cached_tokens=6)
        | details("completion", reasoning_tokens=94, audio_tokens=0,
                  accepted_prediction_tokens=0, rejected_prediction_tokens=0),
        T(26, 6, output=103, reasoning=94)),
    "xai: what it costs stands beside": (
        openai(32, 9, cost_in_usd_ticks=158500) | details(text_tokens=32, cached_tokens=0),
        T(32, output=9)),
    "groq: times beside counts": (
        openai(24, 377, queue_time=0.037493756, prompt_time=0.000680594,
               completion_time=0.463333333, total_time=0.464013927),
        T(24, output=377)),
    "groq: cached and thought": (
        openai(4641, 1817, queue_time=0.02, total_time=2.1)
        | details(cached_tokens=4608) | details("completion", reasoning_tokens=1000),
        T(33, 4608, output=1817, reasoning=1000)),
    "mistral: plain": (openai(16, 34), T(16, output=34)),
    "mistral: cached": (openai(100, 34, num_cached_tokens=64), T(36, 64, output=34)),
    "mistral: a search whose pages were read": (
        openai(188, 55, connector_tokens=7112, connectors={"web_search": 1}, total_tokens=7355),
        T(7300, output=55, searches=1)),
    "cohere: compatible": (openai(5, 418), T(5, output=418)),
    "cohere: its own": (
        {"billed_units": {"input_tokens": 5, "output_tokens": 418},
         "tokens": {"input_tokens": 71, "output_tokens": 418}, "cached_tokens": 0},
        T(5, output=418)),
    "cohere: its own, of which a template was cached": (
        {"billed_units": {"input_tokens": 6, "output_tokens": 5},
         "tokens": {"input_tokens": 72, "output_tokens": 5}, "cached_tokens": 64},
        T(6, output=5)),
    "voyage: the total alone": ({"total_tokens": 800}, T(800)),
    "voyage: multimodal": (
        {"text_tokens": 10, "image_pixels": 2_000_000, "total_tokens": 3576}, T(3576)),
    "jina: embedding": ({"total_tokens": 38, "prompt_tokens": 38}, T(38)),
    "openrouter: with its cost": (
        openai(194, 2, cost=0.95, is_byok=False, cost_details={"upstream_inference_cost": 19})
        | details(cached_tokens=10, cache_write_tokens=100, audio_tokens=0, video_tokens=0)
        | details("completion", reasoning_tokens=0, image_tokens=0),
        T(84, 10, 100, output=2)),
    "together: cached": (openai(100, 20) | {"cached_tokens": 32}, T(68, 32, output=20)),
    "fireworks: cached": (openai(500, 20) | details(cached_tokens=448), T(52, 448, output=20)),
    "vllm: plain": (openai(7, 16) | {"prompt_tokens_details": None}, T(7, output=16)),
    "vllm: blocks found and filled": (
        openai(155, 25)
        | details(cached_tokens=16, created_cache_tokens=128, multimodal_tokens=None),
        T(11, 16, 128, output=25)),
    "sglang: thinking at the top, inside": (
        openai(19, 400, reasoning_tokens=350) | {"prompt_tokens_details": None},
        T(19, output=400, reasoning=350)),
    "sglang: cached": (
        openai(1000, 10, reasoning_tokens=0) | details(cached_tokens=960), T(40, 960, output=10)),
    "tgi: plain": (openai(35, 100), T(35, output=100)),
    "llama.cpp: cached": (openai(60, 8) | details(cached_tokens=59), T(1, 59, output=8)),
    "tensorrt-llm: cached": (openai(64, 8) | details(cached_tokens=32), T(32, 32, output=8)),
    "llama.cpp: its times": (
        {"cache_n": 50, "prompt_n": 10, "prompt_ms": 30.9, "prompt_per_token_ms": 3.0,
         "prompt_per_second": 323.0, "predicted_n": 35, "predicted_ms": 661.0,
         "predicted_per_second": 52.9, "draft_n": 9, "draft_n_accepted": 4},
        T(60, output=35)),
    "bedrock: metrics of a call": (
        {"inputTokenCount": 10, "outputTokenCount": 5000, "invocationLatency": 900,
         "firstByteLatency": 80},
        T(10, output=5000)),
    "ollama: beside its message": (
        {"model": "m", "total_duration": 5, "load_duration": 1, "prompt_eval_count": 26,
         "prompt_eval_duration": 3, "eval_count": 290, "eval_duration": 4},
        T(26, output=290)),
    "mistral: sound in a chat": (
        openai(400, 5, prompt_audio_seconds=12.5), T(400, output=5, audio_ms=12_500)),
    # Without the output nobody knows what of the total was heard: it may all be output.
    "mistral: sound, and no output": (
        {"prompt_tokens": 3, "total_tokens": 379, "prompt_audio_seconds": 12.5},
        T(3, output=376, audio_ms=12_500)),
    "mistral: no sound": (openai(4, 5, prompt_audio_seconds={}), T(4, output=5)),
    "sambanova: rates": (
        openai(4, 5, completion_tokens_per_sec=99.5, time_to_first_token=0.2, total_latency=0.4,
               completion_tokens_after_first_per_sec_first_ten=7.5, end_time=1.5),
        T(4, output=5)),
    "anthropic's at an OpenAI path": (
        {"input_tokens": 10, "cache_creation_input_tokens": 2000,
         "cache_read_input_tokens": 9000, "output_tokens": 50},
        T(10, 9000, 2000, output=50)),
    "anthropic's at an OpenAI path: fewer cached than fresh": (
        {"input_tokens": 900, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100,
         "output_tokens": 5},
        T(900, 100, output=5)),
    "anthropic's at an OpenAI path: of two ages": (
        {"input_tokens": 900, "cache_creation_input_tokens": 70, "cache_read_input_tokens": 100,
         "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40},
         "output_tokens": 5},
        T(900, 100, 30, 40, output=5)),
    "one-api: anthropic's beside OpenAI's, in the total": (
        openai(10, 5, cache_read_input_tokens=9000, cache_creation_input_tokens=2000,
               total_tokens=11_015),
        T(10, 9000, 2000, output=5)),
    "one-api: fewer cached than fresh, in the total": (
        openai(1000, 5, cache_read_input_tokens=100, total_tokens=1105),
        T(1000, 100, output=5)),
    "one-api: the same with thoughts beside": (
        openai(1000, 5, cache_read_input_tokens=100, total_tokens=1145,
               completion_tokens_details={"reasoning_tokens": 40}),
        T(1000, 100, output=45, reasoning=40)),
    "one-api: beside, and in no total": (
        openai(10, 5, cache_read_input_tokens=9000), T(10, 9000, output=5)),
    "one-api: OpenAI's name of what is beside": (
        openai(10, 5, total_tokens=9015) | details(cached_tokens=9000), T(10, 9000, output=5)),
    "new-api: names of both, some not in use": (
        openai(0, 0, input_tokens=900, output_tokens=5, total_tokens=905), T(900, output=5)),
    "litellm: anthropic's names inside": (
        openai(1000, 5, cache_read_input_tokens=600, cache_creation_input_tokens=100)
        | details(cached_tokens=600), T(300, 600, 100, output=5)),
    "bedrock's at an OpenAI path, in the total": (
        {"inputTokens": 30, "outputTokens": 628, "cacheReadInputTokens": 1000,
         "cacheWriteInputTokens": 500, "totalTokens": 2158},
        T(30, 1000, 500, output=628)),
    "perplexity: thinking beside, told to be more than all": (
        openai(20, 300, reasoning_tokens=73_000, num_search_queries=18,
               cost={"input_tokens_cost": 0.001, "total_cost": 0.4}),
        T(20, output=73_300, reasoning=73_000, searches=18)),
    "a translation of anthropic: thinking by its name": (
        openai(19, 400) | {"output_tokens_details": {"thinking_tokens": 350}},
        T(19, output=400, reasoning=350)),
    "perplexity: sonar": (
        openai(14, 188, search_context_size="low",
               cost={"input_tokens_cost": 0.0, "output_tokens_cost": 0.0, "total_cost": 0.006}),
        T(14, output=188)),
}  # fmt: skip
BESIDE: dict[str, tuple[Shape, TokenCounts]] = {
    "anthropic: plain": ({"input_tokens": 2095, "output_tokens": 503}, T(2095, output=503)),
    "anthropic: cache of two ages": (
        {"input_tokens": 100, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 70,
         "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 40},
         "output_tokens": 20, "service_tier": "standard"},
        T(100, 900, 30, 40, output=20)),
    "anthropic: searches": (
        {"input_tokens": 105, "output_tokens": 6039, "cache_read_input_tokens": 7123,
         "cache_creation_input_tokens": 7345,
         "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 2}},
        T(105, 7123, 7345, output=6039, searches=1)),
    "anthropic: two rounds, split of the first": (
        {"input_tokens": 300, "cache_creation_input_tokens": 6000, "cache_read_input_tokens": 9000,
         "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0},
         "output_tokens": 5, "server_tool_use": {"web_search_requests": 2}},
        T(300, 9000, 6000, output=5, searches=2)),
    "bedrock: plain": (
        {"inputTokens": 30, "outputTokens": 628, "totalTokens": 658}, T(30, output=628)),
    "bedrock: cache": (
        {"inputTokens": 30, "outputTokens": 628, "cacheReadInputTokens": 1000,
         "cacheWriteInputTokens": 500},
        T(30, 1000, 500, output=628)),
    "bedrock: cache in the total": (
        {"inputTokens": 30, "outputTokens": 628, "cacheReadInputTokens": 1000,
         "cacheWriteInputTokens": 500, "totalTokens": 2158},
        T(30, 1000, 500, output=628)),
    "bedrock: reads in the total, no writes": (
        {"inputTokens": 30, "outputTokens": 628, "cacheReadInputTokens": 1000,
         "cacheWriteInputTokens": 500, "totalTokens": 1658},
        T(30, 1000, 500, output=628)),
}  # fmt: skip
# Read for what it is, but with a number that no price of ours can charge: it stays visible.
PARTLY: dict[str, tuple[Shape, tuple[str, ...]]] = {
    "a count of tomorrow": (openai(20, 3, holograms=2), ("holograms",)),
    "one inside details": (
        openai(20, 3) | details(holo_tokens=2), ("prompt_tokens_details.holo_tokens",)),
    "one as a text": (openai(20, 3, units="999"), ("units",)),
    "one below a rate": (openai(20, 3, extra_rate={"tokens": 9}), ("extra_rate.tokens",)),
    "one below a time": (openai(20, 3, images_s={"a": 5}), ("images_s.a",)),
    "one whose name ends as a time's": (openai(20, 3, tool_calls_s=5000), ("tool_calls_s",)),
    "seconds in the name of something else": (
        openai(20, 3, seconds_billed=5), ("seconds_billed",)),
    "seconds that are no wait": (openai(20, 3, audio_seconds=5), ("audio_seconds",)),
    "a count of what costs": (
        openai(20, 3, cost_tokens=5, cost={"units": 7}), ("cost_tokens", "cost.units")),
    "one in a list": (openai(20, 3) | {"rounds": [{"tokens": 7}]}, ("rounds[].tokens",)),
}  # fmt: skip


def read(name: str, usage: Shape) -> TokenCounts:
    if name.startswith(("voyage", "jina", "openai: embedding")):
        return tokens_of_embedding(usage)
    return tokens_from_usage(usage, OUTSIDE if name in BESIDE else Convention.CACHED_INSIDE)


@pytest.mark.parametrize("name", [*READ, *BESIDE])
def test_a_providers_usage_is_read_whole(name: str) -> None:
    usage, tokens = (READ | BESIDE)[name]
    assert read(name, usage) == tokens
    assert unread(usage) == ()


@pytest.mark.parametrize("name", PARTLY)
def test_a_number_that_is_not_read_is_told(name: str) -> None:
    usage, paths = PARTLY[name]
    assert unread(usage) == paths


@pytest.mark.parametrize("name", [*READ, *BESIDE, *PARTLY])
def test_a_shape_that_is_remembered_is_looked_through_as_a_new_one(name: str) -> None:
    usage = (READ | BESIDE | PARTLY)[name][0]
    if "one as a text" in name:
        assert has_unread(usage)
        return
    assert has_unread(usage) is has_unread(usage) is bool(unread(usage))
    zeros = json.loads(re.sub(r":[ ]*\d+(\.\d+)?", ": 0", json.dumps(usage)))
    assert not has_unread(zeros)


@pytest.mark.parametrize(
    "usage",
    [
        {"search_units": 1},
        {"type": "duration", "seconds": 60},
        {"prompt_audio_seconds": 3, "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        {"input_tokens": 20, "input_token_details": {"text_tokens": 1, "audio_tokens": 19},
         "output_tokens": 5, "total_tokens": 25},
    ],
)  # fmt: skip
def test_usage_of_rankings_and_transcripts_is_known_whole(usage: Shape) -> None:
    assert not has_unread(usage)
    assert has_unread(usage | {"pages": 3}), "the control"


@pytest.mark.parametrize("path", [path for path in MEMBERS if "[" not in path])
def test_every_member_of_the_table_changes_what_is_read_or_is_part_of_it(path: str) -> None:
    """The control of the table: an entry with the wrong meaning makes a difference, or none."""
    *objects, last = path.split(".")
    usage: Shape = {}
    inside = usage
    for name in objects:
        inside = inside.setdefault(name, {})
    inside[last] = 7
    meaning = MEMBERS[path]
    base: Shape = {"prompt_tokens": 50, "completion_tokens": 20}
    plain = tokens_from_usage(base, Convention.CACHED_INSIDE)
    if meaning in (UsageCount.PROMPT, UsageCount.COMPLETION):
        base = (
            {"prompt_tokens": 50} if meaning is UsageCount.COMPLETION else {"completion_tokens": 20}
        )
    elif meaning is UsageCount.TOTAL:
        base = {"prompt_tokens": 3}
    changed = tokens_from_usage(base | usage, Convention.CACHED_INSIDE)
    assert (changed == plain) is (meaning is UsageCount.INCLUDED), (path, changed)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-5, 99) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
))  # fmt: skip
def test_whatever_stands_beside_is_walked_through(beside: Any) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "beside": beside}
    assert all(path.startswith("beside") for path in unread(usage))
    assert [path for path, _ in leaves(usage)][:2] == ["prompt_tokens", "completion_tokens"]
    try:
        assert tokens_from_usage(usage, Convention.CACHED_INSIDE) == TokenCounts(5, output=2)
    except UsageError as error:
        raise AssertionError(error) from error


def test_depth_is_bounded_and_what_is_deeper_is_not_read() -> None:
    usage: Shape = {"prompt_tokens": 5}
    for _ in range(10_000):
        usage = {"a": usage}
    assert unread(usage) == ("a.a.a.a.a.a.a",)
