"""Comparison of whole replicas with separate prefill and decode engines, by throughput.

Step times are floors times a measured ratio (`OVER_FLOORS`). Arrivals are evenly spaced, so every
figure is a maximum. `N` sequences of an engine finish `N / (output x step)` requests per second. A
whole replica reads as many prompts at the same time, in chunks: fuller steps lengthen the gaps
between tokens, and smaller chunks delay the first token. A separate prefill engine reads one prompt
at a time and has no limit per token. A decode engine reads no prompts; each prompt's KV is copied.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from backends.engine.kvtransfer import GB_PER_S, SETUP_S
from backends.engine.loadfloor import UserLoad
from backends.engine.planning.question import Figures, ParallelLayout, PlanRequest, value
from backends.engine.planning.speed import OVER_FLOORS
from backends.engine.planning.weights import USUAL
from backends.stepmodel import FittedStepModel

COPIES = (2, 4)  # number of copies of the planned layout


@dataclass(frozen=True, slots=True)
class RoleLayout:
    """Copies of an engine, whole or in roles, at the highest load that keeps the limits.

    The limits are those of TTFT and TPOT. `requests_s` is 0 if no load keeps them. `binds` names
    the limit that more requests would break. `usd_per_million` is per million output tokens, None
    without a rate.
    """

    layout: str
    gpus: int
    requests_s: float
    ttft_s: float | None
    tpot_s: float | None
    binds: str
    usd_per_million: float | None = None
    advised: bool = False


@dataclass(frozen=True, slots=True)
class _Engine:
    """One copy of an engine: step time, KV capacity in tokens, load and latency limits."""

    step: FittedStepModel
    kv_tokens: int
    kv_bytes: float  # per token
    load: UserLoad
    tpot_s: float
    ttft_s: float  # infinite without a TTFT limit

    @property
    def context(self) -> float:
        return self.load.prompt_tokens + self.load.output_tokens / 2

    def step_s(self, sequences: float, prefill_tokens: float) -> float:
        return OVER_FLOORS * self.step.step_s(
            sequences=0,
            context_tokens=sequences * self.context,
            prefill_tokens=prefill_tokens,
        )

    def rate(self, sequences: float, step_s: float) -> float:
        return sequences / (self.load.output_tokens * step_s)

    @property
    def held(self) -> float:
        """Return how many requests fit in the KV cache, each at its full length."""
        return self.kv_tokens / (self.load.prompt_tokens + self.load.output_tokens)

    @property
    def read_s(self) -> float:
        """Return the time of a step that reads one prompt and decodes nothing."""
        return self.step_s(0, self.load.prompt_tokens)

    @property
    def moved_s(self) -> float:
        """Return the transfer time of one prompt's KV, at the defaults of a pool's `roles`."""
        return SETUP_S + self.load.prompt_tokens * self.kv_bytes / (GB_PER_S * 1e9)


def role_layouts(
    step: FittedStepModel,
    question: PlanRequest,
    layout: ParallelLayout,
    figures: Figures,
    usd_per_gpu_hour: Decimal | None,
) -> tuple[RoleLayout, ...]:
    """Return layouts of 2 and of 4 copies, with the highest throughput of each count marked.

    Return an empty tuple without a TPOT limit: separate engines have no advantage then.
    """
    if question.tpot_ms is None:
        return ()
    engine = _Engine(
        step,
        int(value(figures, "kv_tokens")),
        value(figures, "kv_bytes_per_token"),
        question.load or USUAL,
        question.tpot_ms / 1e3,
        float("inf") if question.ttft_ms is None else question.ttft_ms / 1e3,
    )
    made: list[RoleLayout] = []
    for copies in COPIES:
        found = [
            _priced(each, engine, layout, usd_per_gpu_hour) for each in _layouts(engine, copies)
        ]
        best = max(each.requests_s for each in found)
        made += (replace(each, advised=0 < best == each.requests_s) for each in found)
    return tuple(made)


def _layouts(engine: _Engine, copies: int) -> Iterator[RoleLayout]:
    yield _whole(engine, copies)
    for prefill in range(1, copies):
        yield _apart(engine, prefill, copies - prefill)


def _whole(engine: _Engine, copies: int) -> RoleLayout:
    """Return whole replicas with the most sequences whose prompt chunks keep both limits."""
    load, name = engine.load, f"{copies} whole"
    free_s = engine.tpot_s - engine.step_s(0, 0)
    beside_s = engine.step_s(1, 0) - engine.step_s(0, 0)  # time of one more sequence
    token_s = (engine.read_s - engine.step_s(0, 0)) / load.prompt_tokens
    # Each chunk of a prompt takes one step of the length of the TPOT limit.
    chunk = load.prompt_tokens * engine.tpot_s / engine.ttft_s
    limits = {
        "time per token": free_s / (beside_s + token_s * load.prompt_tokens / load.output_tokens),
        "first token": (free_s - token_s * chunk) / beside_s,
        "KV": engine.held,
    }
    binds = min(limits, key=lambda each: limits[each])
    sequences = limits[binds]
    if sequences < 1:
        return RoleLayout(name, copies, 0.0, None, None, binds)
    step_s = engine.step_s(sequences, sequences * load.prompt_tokens / load.output_tokens)
    room = (free_s - beside_s * sequences) / token_s  # prompt tokens that fit in the fullest step
    ttft_s = max(1.0, load.prompt_tokens / room) * engine.tpot_s
    return RoleLayout(name, copies, copies * engine.rate(sequences, step_s), ttft_s, step_s, binds)


def _apart(engine: _Engine, prefill: int, decode: int) -> RoleLayout:
    """Return separate engines, at the lower of the prefill rate and the decode rate."""
    load, name, copies = engine.load, f"{prefill} prefill, {decode} decode", prefill + decode
    empty_s = engine.step_s(0, 0)
    beside_s = engine.step_s(1, 0) - empty_s
    limits = {"time per token": (engine.tpot_s - empty_s) / beside_s, "KV": engine.held}
    binds = min(limits, key=lambda each: limits[each])
    if limits[binds] < 1:
        return RoleLayout(name, copies, 0.0, None, None, binds)
    step_s = engine.step_s(limits[binds], 0)
    requests_s = decode * engine.rate(limits[binds], step_s)
    if prefill / engine.read_s < requests_s:
        requests_s, binds = prefill / engine.read_s, "prompts"
        # Fewer sequences decode then: solve `N / (output x step)` for this rate.
        step_s = empty_s / (1 - load.output_tokens * requests_s / decode * beside_s)
    ttft_s = engine.read_s + engine.moved_s + step_s
    if ttft_s > engine.ttft_s:
        return RoleLayout(name, copies, 0.0, ttft_s, step_s, "first token")
    return RoleLayout(name, copies, requests_s, ttft_s, step_s, binds)


def _priced(
    made: RoleLayout, engine: _Engine, layout: ParallelLayout, usd_per_gpu_hour: Decimal | None
) -> RoleLayout:
    """Return the layout with its number of GPUs, and dollars per million output tokens."""
    gpus = made.gpus * layout.gpus
    if usd_per_gpu_hour is None or not made.requests_s:
        return replace(made, gpus=gpus)
    tokens_s = made.requests_s * engine.load.output_tokens
    usd = float(usd_per_gpu_hour) * gpus / 3600 / tokens_s * 1e6
    return replace(made, gpus=gpus, usd_per_million=usd)
