"""Readers of the metrics pages of engines other than vLLM, into the same sample.

Each dialect lists its metric names; their source, version and commit are with the pages in
tests/backends/pages. A metric that an engine lacks is `None`: its KV usage is then unknown, not 0,
and load from others than this gateway is invisible. Over several ranks, counts add up and ratios
are the maximum, because the fullest rank preempts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from backends.enginesample import EngineSample, ProbeFailed

METRICS_PATH: Final = "/metrics"


@dataclass(frozen=True, slots=True)
class MetricsDialect:
    """A page format. `mark` matches each of its pages; `read` raises `ProbeFailed`."""

    mark: re.Pattern[str]
    read: Callable[[str], EngineSample]
    path: str = METRICS_PATH


class MetricsLines:
    """The lines of a page whose names begin with one of the prefixes."""

    def __init__(self, page: str, *prefixes: str) -> None:
        self._found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for name, labels, text in _lines(prefixes).findall(page):
            try:
                value = float(text)
            except ValueError as error:
                raise ProbeFailed(f"{name} has the value {text!r}") from error
            self._found.setdefault(name, []).append((dict(_LABEL.findall(labels)), value))

    def __bool__(self) -> bool:
        return bool(self._found)

    def values(self, name: str, **wanted: str) -> list[float]:
        """Return the values of all lines with these labels; a missing label counts as empty."""
        return [
            value
            for labels, value in self._found.get(name, ())
            if all(labels.get(label, "") in ("", word) for label, word in wanted.items())
        ]

    def total(self, *names: str, **wanted: str) -> int | None:
        """Return the sum under the first of the names that the page has."""
        for name in names:
            if found := self.values(name, **wanted):
                return _whole(name, sum(found))
        return None

    def highest(self, name: str, **wanted: str) -> float | None:
        return max(self.values(name, **wanted), default=None)


def _sglang(page: str) -> EngineSample:
    rows = _rows(page, "sglang:")
    # Each pipeline stage counts the same requests; priorities have separate lines too.
    entry = {"pp_rank": "0", "priority": ""}
    prompts = rows.total("sglang:prompt_tokens_total")
    return EngineSample(
        running=rows.total("sglang:num_running_reqs", **entry),
        waiting=rows.total("sglang:num_queue_reqs", **entry),
        kv_usage_ratio=_ratio(rows.highest("sglang:token_usage", **entry)),
        kv_capacity_tokens=rows.total("sglang:max_total_num_tokens", **entry),
        kv_block_tokens=_size(rows.highest("sglang:page_size", **entry)),
        preemptions_total=rows.total("sglang:num_retracted_requests_total", **entry),
        prompt_tokens_total=prompts,
        generation_tokens_total=rows.total("sglang:generation_tokens_total"),
        prefix_query_tokens_total=prompts,
        prefix_hit_tokens_total=rows.total("sglang:cached_tokens_total"),
        started_at_s=rows.highest("process_start_time_seconds"),
        dialect="sglang",
    )


def _tgi(page: str) -> EngineSample:
    """Read TGI's page, which is empty before the first answer and has no KV cache metrics."""
    rows = MetricsLines(page, "tgi_")
    return EngineSample(
        running=rows.total("tgi_batch_current_size"),
        waiting=rows.total("tgi_queue_size"),
        kv_usage_ratio=None,
        kv_capacity_tokens=None,
        kv_block_tokens=None,
        preemptions_total=None,
        prompt_tokens_total=rows.total("tgi_request_input_length_sum"),
        generation_tokens_total=rows.total("tgi_request_generated_tokens_sum"),
        prefix_query_tokens_total=None,
        prefix_hit_tokens_total=None,
        started_at_s=None,
        dialect="tgi",
    )


def _tensorrt_llm(page: str) -> EngineSample:
    rows = _rows(page, "trtllm_")
    prompts = rows.total("trtllm_prompt_tokens_total")
    block = _size(rows.highest("trtllm_kv_cache_tokens_per_block"))
    blocks = rows.total("trtllm_kv_cache_max_blocks")
    return EngineSample(
        running=rows.total("trtllm_num_requests_running"),
        waiting=rows.total("trtllm_num_requests_waiting"),
        kv_usage_ratio=_ratio(rows.highest("trtllm_kv_cache_utilization")),
        kv_capacity_tokens=blocks * block if blocks and block else None,
        kv_block_tokens=block,
        preemptions_total=None,
        prompt_tokens_total=prompts,
        generation_tokens_total=rows.total("trtllm_generation_tokens_total"),
        prefix_query_tokens_total=prompts,
        prefix_hit_tokens_total=rows.total("trtllm_prompt_cached_tokens_total"),
        started_at_s=rows.highest("process_start_time_seconds"),
        dialect="tensorrt-llm",
    )


def _triton(page: str) -> EngineSample:
    """Read Triton's page; without the TensorRT-LLM backend it has only waiting requests."""
    rows = _rows(page, "nv_")
    requests, blocks = "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"
    block = _size(rows.highest(blocks, kv_cache_block_type="tokens_per"))
    most = rows.total(blocks, kv_cache_block_type="max")
    used = rows.total(blocks, kv_cache_block_type="used")
    waiting = rows.total(requests, request_type="waiting")
    return EngineSample(
        running=rows.total(requests, request_type="scheduled"),
        # Each model of an ensemble counts the same waiting request: take the longest queue.
        waiting=waiting
        if waiting is not None
        else _size(rows.highest("nv_inference_pending_request_count"), least=0),
        # The page's own `fraction` is not used: in examples, the block counts contradict it.
        kv_usage_ratio=_ratio(used / most) if most and used is not None else None,
        kv_capacity_tokens=most * block if most and block else None,
        kv_block_tokens=block,
        preemptions_total=None,
        prompt_tokens_total=None,
        generation_tokens_total=None,
        prefix_query_tokens_total=None,
        prefix_hit_tokens_total=None,
        started_at_s=None,
        dialect="triton",
    )


def _llama_cpp(page: str) -> EngineSample:
    """Read llama.cpp's page: old servers report KV usage, none its capacity."""
    rows = _rows(page, "llamacpp:")
    return EngineSample(
        running=rows.total("llamacpp:requests_processing"),
        waiting=rows.total("llamacpp:requests_deferred"),
        kv_usage_ratio=_ratio(rows.highest("llamacpp:kv_cache_usage_ratio")),
        kv_capacity_tokens=None,
        kv_block_tokens=None,
        preemptions_total=None,
        prompt_tokens_total=rows.total("llamacpp:prompt_tokens_total"),
        generation_tokens_total=rows.total("llamacpp:tokens_predicted_total"),
        prefix_query_tokens_total=None,
        prefix_hit_tokens_total=None,
        started_at_s=None,
        dialect="llama.cpp",
    )


def _mark(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"^{prefix}\w", re.MULTILINE)


SGLANG: Final = MetricsDialect(_mark("sglang:"), _sglang)
TGI: Final = MetricsDialect(_mark("tgi_"), _tgi)
# At /metrics `trtllm-serve` sends JSON, and reading removes it for other readers.
TENSORRT_LLM: Final = MetricsDialect(_mark("trtllm_"), _tensorrt_llm, path="/prometheus/metrics")
TRITON: Final = MetricsDialect(_mark("nv_(?:trt_llm|inference)_"), _triton)
LLAMA_CPP: Final = MetricsDialect(_mark("llamacpp:"), _llama_cpp)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def _lines(prefixes: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(f"{re.escape(prefix)}\\w*" for prefix in prefixes)
    return re.compile(
        rf"^({names}|process_start_time_seconds)(?:\{{(.*)\}})?[ \t]+(\S+)", re.MULTILINE
    )


def _rows(page: str, prefix: str) -> MetricsLines:
    rows = MetricsLines(page, prefix)
    if not _mark(prefix).search(page):
        raise ProbeFailed(f"the metrics page has no metric that begins with {prefix}")
    return rows


def _whole(name: str, value: float) -> int:
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise ProbeFailed(f"{name} has the value {value}") from error


def _size(value: float | None, *, least: int = 1) -> int | None:
    """Return a whole number, `None` below `least`, which counts as not reported."""
    return None if value is None or not least <= value < float("inf") else int(value)


def _ratio(value: float | None) -> float | None:
    """Return a ratio between 0 and 1, `None` for any other value."""
    return value if value is not None and 0.0 <= value <= 1.0 else None
