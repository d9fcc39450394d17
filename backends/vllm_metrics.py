"""Parser of vLLM's metrics page into a sample.

The page is 80 KB and read up to four times a second per engine, so only lines that start with a
required name are parsed. Data-parallel ranks are `engine` labels: counts add up, KV usage is
weighted by each rank's blocks. vLLM reserves one block per rank; it holds no request's tokens. A
page without the KV usage gauge (`kv_cache_usage_perc`, in old releases `gpu_cache_usage_perc`) is a
failed probe, since 0 would mean an empty engine. So is a page with an invalid (NaN, infinite) or
negative number. A negative queue time is only unknown: vLLM (0.32) counts a request that fails
before its first step (its KV could not be loaded) as started at time zero.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from backends.enginesample import EngineSample, ProbeFailed

KV_USAGE: Final = "vllm:kv_cache_usage_perc"
KV_USAGE_OLD: Final = "vllm:gpu_cache_usage_perc"
MARK: Final = re.compile(f"{KV_USAGE}|{KV_USAGE_OLD}")


def read_vllm(page: str) -> EngineSample:
    """Return the sample of the page. Raises `ProbeFailed` if required metrics are missing."""
    sums, by_engine, cache = _collect(page)
    usage = by_engine.get(KV_USAGE) or by_engine.get(KV_USAGE_OLD)
    if not usage:
        raise ProbeFailed(f"the metrics page has neither {KV_USAGE} nor {KV_USAGE_OLD}")
    missing = [name for name in _REQUIRED if name not in sums]
    if missing:
        raise ProbeFailed(f"the metrics page has no {', '.join(missing)}")
    blocks, block_tokens = _blocks(cache)
    return EngineSample(
        running=int(sums["vllm:num_requests_running"]),
        waiting=int(sums["vllm:num_requests_waiting"]),
        kv_usage_ratio=_weighted_usage(usage, blocks),
        kv_capacity_tokens=sum(blocks.values()) * block_tokens if block_tokens else None,
        kv_block_tokens=block_tokens,
        preemptions_total=int(sums["vllm:num_preemptions_total"]),
        prompt_tokens_total=int(sums["vllm:prompt_tokens_total"]),
        generation_tokens_total=int(sums["vllm:generation_tokens_total"]),
        prefix_query_tokens_total=int(sums.get("vllm:prefix_cache_queries_total", 0)),
        prefix_hit_tokens_total=int(sums.get("vllm:prefix_cache_hits_total", 0)),
        started_at_s=sums.get("process_start_time_seconds"),
    )


_REQUIRED = (
    "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:num_preemptions_total",
    "vllm:prompt_tokens_total", "vllm:generation_tokens_total",
)  # fmt: skip
_CACHE_CONFIG = "vllm:cache_config_info"
_WANTED = (
    *_REQUIRED, KV_USAGE, KV_USAGE_OLD, _CACHE_CONFIG,
    "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "process_start_time_seconds",
)  # fmt: skip
_NAMES = frozenset(_WANTED)
# A name must be followed by labels or a value.
_LINE = re.compile(r"([\w:]+)(?:\{(.*)\})?[ \t]+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ENGINE = re.compile(r'(?:^|,)engine="([^"]*)"')


def _collect(
    page: str,
) -> tuple[dict[str, float], dict[str, dict[str, float]], dict[str, dict[str, str]]]:
    """Return sums by name, KV usage by engine, and cache configuration by engine."""
    sums: defaultdict[str, float] = defaultdict(float)
    usage: dict[str, dict[str, float]] = {}
    cache: dict[str, dict[str, str]] = {}
    for name, labels, text in _wanted_lines(page):
        value = _number(text)
        if not 0.0 <= value < math.inf:
            raise ProbeFailed(f"{name} has the value {text!r}")
        if name in (KV_USAGE, KV_USAGE_OLD):
            usage.setdefault(name, {})[_engine(labels)] = value
        elif name == _CACHE_CONFIG:
            cache[_engine(labels)] = dict(_LABEL.findall(labels))
        else:
            sums[name] += value
    return sums, usage, cache


def _wanted_lines(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, labels and value; a lookup by name is twice as fast as one long pattern."""
    for line in page.split("\n"):
        end = line.find("{")
        name = line[:end] if end >= 0 else line.partition(" ")[0].partition("\t")[0]
        if name in _NAMES and (found := _LINE.match(line)) is not None:
            yield name, found[2] or "", found[3]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _engine(labels: str) -> str:
    found = _ENGINE.search(labels)
    return found.group(1) if found else "0"


def _blocks(cache: dict[str, dict[str, str]]) -> tuple[dict[str, int], int | None]:
    """Return usable blocks per engine and tokens per block, as far as the page has them."""
    blocks: dict[str, int] = {}
    block_tokens: int | None = None
    for engine, labels in cache.items():
        count, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
        if count.isdecimal() and size.isdecimal():
            blocks[engine] = max(int(count) - 1, 0)
            block_tokens = int(size)
    return blocks, block_tokens


def _weighted_usage(usage: dict[str, float], blocks: dict[str, int]) -> float:
    weights = {engine: float(blocks.get(engine, 0)) for engine in usage}
    total = sum(weights.values())
    if total == 0.0:
        # With unknown sizes, assuming the emptiest rank would be dangerous.
        return max(usage.values())
    return sum(value * weights[engine] for engine, value in usage.items()) / total
