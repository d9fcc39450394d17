"""The `/metrics` page of a vLLM server, from the simulated engine's state and counters.

Names, labels and histogram buckets follow vLLM 0.32: the subset that load signals, tests and
dashboards read. The page is rendered without a registry and without label lookups per token.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from backends.simulator.model import SimulatedEngine

_SECONDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
            10.0, 20.0, 40.0, 80.0)  # fmt: skip
_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
         10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_LONG = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
         240.0, 480.0, 960.0, 1920.0, 7680.0)  # fmt: skip
_PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


class SequenceTimes(Protocol):
    """The times of a finished sequence (`pacing.Ticket`)."""

    submitted_s: float
    admitted_s: float | None
    first_s: float | None
    generated: int
    preemptions: int


class SimulatedHistogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        yield f"# TYPE {name} histogram"
        running = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            running += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {running}.0'
        yield f"{name}_count{{{labels}}} {running}.0"
        yield f"{name}_sum{{{labels}}} {self.total}"


@dataclass(slots=True)
class Meters:
    """Counters of requests; the engine itself counts tokens and preemptions."""

    model: str
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FINISH_REASONS, 0))
    rejections: int = 0
    embedded_tokens: int = 0
    ttft: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_TTFT))
    itl: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_SECONDS))
    tpot: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_SECONDS))
    queue: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_LONG))
    prefill: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_LONG))
    decode: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_LONG))
    e2e: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_LONG))
    preempted: SimulatedHistogram = field(default_factory=lambda: SimulatedHistogram(_PREEMPTIONS))

    def record_first_token(self, ttft_s: float) -> None:
        self.ttft.observe(ttft_s)

    def record_token_gap(self, seconds: float) -> None:
        self.itl.observe(seconds)

    def record_finished(self, ticket: SequenceTimes, at_s: float) -> None:
        admitted_s = ticket.admitted_s if ticket.admitted_s is not None else ticket.submitted_s
        first_s = ticket.first_s if ticket.first_s is not None else at_s
        self.queue.observe(admitted_s - ticket.submitted_s)
        self.prefill.observe(first_s - admitted_s)
        self.decode.observe(at_s - first_s)
        self.e2e.observe(at_s - ticket.submitted_s)
        self.preempted.observe(ticket.preemptions)
        if ticket.generated > 1:
            self.tpot.observe((at_s - first_s) / (ticket.generated - 1))

    def record_ended(self, finish_reason: str) -> None:
        """Count a completely answered choice; like vLLM, a tool call counts as a stop."""
        self.ends[finish_reason if finish_reason in self.ends else "stop"] += 1

    def record_aborted(self) -> None:
        self.ends["abort"] += 1

    def exposition(self, engine: SimulatedEngine) -> bytes:
        return ("\n".join(self._lines(engine)) + "\n").encode()

    def _lines(self, engine: SimulatedEngine) -> Iterator[str]:
        labels = f'engine="0",model_name="{self.model}"'
        yield from _gauges(engine, labels)
        yield from _counters(engine, labels, self.embedded_tokens)
        name = "vllm:request_success_total"
        yield f"# TYPE {name} counter"
        for reason, count in self.ends.items():
            yield (
                f'{name}{{engine="0",finished_reason="{reason}",model_name="{self.model}"}}'
                f" {count}.0"
            )
        name = "vllm:admission_rejections_total"
        yield f"# TYPE {name} counter"
        yield (
            f'{name}{{model_name="{self.model}",reason="max_num_queued_reqs"}} {self.rejections}.0'
        )
        for name, histogram in (
            ("time_to_first_token_seconds", self.ttft),
            ("inter_token_latency_seconds", self.itl),
            ("request_time_per_output_token_seconds", self.tpot),
            ("request_queue_time_seconds", self.queue),
            ("request_prefill_time_seconds", self.prefill),
            ("request_decode_time_seconds", self.decode),
            ("e2e_request_latency_seconds", self.e2e),
            ("request_num_preemptions", self.preempted),
        ):
            yield from histogram.lines(f"vllm:{name}", labels)


def _gauges(engine: SimulatedEngine, labels: str) -> Iterator[str]:
    shape = engine.shape
    info = {
        "block_size": shape.block_tokens,
        "cache_dtype": "auto",
        "enable_prefix_caching": shape.prefix_caching,
        "engine": 0,
        "kv_cache_max_concurrency": shape.kv_capacity_tokens / shape.context_tokens,
        "kv_cache_size_tokens": shape.blocks * shape.block_tokens,
        "num_gpu_blocks": shape.blocks,
    }
    yield "# TYPE vllm:cache_config_info gauge"
    yield f"vllm:cache_config_info{{{_labels(info)}}} 1.0"
    for name, value in (
        ("num_requests_running", engine.running),
        ("num_requests_waiting", engine.waiting),
        ("kv_cache_usage_perc", engine.kv_usage_ratio),
    ):
        yield f"# TYPE vllm:{name} gauge"
        yield f"vllm:{name}{{{labels}}} {float(value)}"
    name = "vllm:num_requests_waiting_by_reason"
    yield f"# TYPE {name} gauge"
    yield f'{name}{{{labels},reason="capacity"}} {float(engine.waiting)}'
    yield f'{name}{{{labels},reason="deferred"}} 0.0'


def _counters(engine: SimulatedEngine, labels: str, embedded_tokens: int) -> Iterator[str]:
    totals = engine.totals
    for name, value in (
        ("num_preemptions_total", totals.preemptions),
        ("prompt_tokens_total", totals.prompt_tokens + embedded_tokens),
        ("generation_tokens_total", totals.generation_tokens),
        ("prefix_cache_queries_total", totals.prefix_queries),
        ("prefix_cache_hits_total", totals.prefix_hits),
        ("prompt_tokens_cached_total", totals.prefix_hits),
    ):
        yield f"# TYPE vllm:{name} counter"
        yield f"vllm:{name}{{{labels}}} {float(value)}"


def _labels(values: Mapping[str, object]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in values.items())
