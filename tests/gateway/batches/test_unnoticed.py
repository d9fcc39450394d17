"""Live first tokens with and without a batch beside them: shown on a simulated engine.

In virtual time: the engine's arithmetic, the router's own decision and idle rule, a runner's pace.
The negative control is the same without the rule: lines go in up to the runner's limit.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import pytest

from backends.simulator.model import SimulatedEngine
from backends.simulator.profiles import PROFILES
from backends.simulator.shape import SequenceEventKind
from gateway.batches.pace import LineConcurrency
from router.decide import decide
from router.idle import TightestSlo, reason_to_preempt, spare_decision
from router.request_kinds import RequestKind
from router.types import (
    Candidate,
    EngineState,
    Feature,
    OutputMoments,
    Policy,
    RoutingRequest,
    StepModel,
    TargetHealth,
)

SHAPE = PROFILES["h100-llama-3.1-8b-fp8"].shape
PROMISED = TightestSlo(ttft_ms=200.0, tpot_ms=25.0)
SECONDS, TICK_S = 40.0, 0.05
PER_S = 8.0  # live requests
LIVE_PROMPT, LIVE_OUTPUT = 600, 150
LINE_PROMPT, LINE_OUTPUT = 1500, 400
MOST = 256  # lines out at once, as a runner may be told


@dataclass
class SeenTimes:
    """First tokens and ends of live requests, in seconds; tokens of lines that were finished."""

    ttft_s: list[float] = field(default_factory=list)
    tpot_s: list[float] = field(default_factory=list)
    line_tokens: int = 0

    def p95_ms(self, numbers: list[float]) -> float:
        return 1000.0 * sorted(numbers)[int(0.95 * len(numbers))]


class Scene:
    """One engine, live arrivals from a seed, and lines without end."""

    def __init__(self, *, lines: bool, rule: bool) -> None:
        self.engine = SimulatedEngine(SHAPE)
        self.lines, self.rule = lines, rule
        self.pace, self.out = LineConcurrency(MOST), set()
        self.seen = SeenTimes()
        self._began: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._held: Counter[str] = Counter()
        self._number = 0

    def run(self) -> SeenTimes:
        rng, now_s = random.Random(7), 0.0
        next_s = rng.expovariate(PER_S)
        while now_s < SECONDS:
            until_s = min(now_s + TICK_S, SECONDS)
            while next_s <= until_s:
                self._see(self.engine.advance(next_s))
                self._submit("live", next_s, LIVE_PROMPT, LIVE_OUTPUT)
                next_s += rng.expovariate(PER_S)
            self._see(self.engine.advance(until_s))
            now_s = until_s
            if self.lines:
                self._feed(now_s)
        return self.seen

    def _submit(self, kind: str, now_s: float, prompt: int, output: int) -> str:
        self._number += 1
        name = f"{kind}-{self._number}"
        self.engine.submit(name, now_s, prompt_tokens=prompt, output_tokens=output)
        self._began[name] = now_s
        self._held[name] = prompt + output
        return name

    def _see(self, events) -> None:
        for event in events:
            name = event.id
            if event.what is SequenceEventKind.FIRST:
                self._first[name] = event.at_s
            if event.what is SequenceEventKind.FINISHED:
                del self._held[name]
                if name in self.out:
                    self.out.remove(name)
                    self.seen.line_tokens += LINE_PROMPT + LINE_OUTPUT
                else:
                    first = self._first[name]
                    self.seen.ttft_s.append(first - self._began[name])
                    self.seen.tpot_s.append((event.at_s - first) / (LIVE_OUTPUT - 1))

    def _feed(self, now_s: float) -> None:
        if self.rule and reason_to_preempt(self._state(), PROMISED) and self.out:
            newest = max(self.out, key=lambda name: self._began[name])
            self.engine.abort(newest)
            self.out.remove(newest)
            del self._held[newest]
        for _ in range(
            self.pace.additional_lines(len(self.out), now_s) if self.rule else MOST - len(self.out)
        ):
            if self.rule and not self._idle():
                self.pace.record_refusal(len(self.out) + 1, now_s)
                return
            self.out.add(self._submit("line", now_s, LINE_PROMPT, LINE_OUTPUT))

    def _state(self) -> EngineState:
        engine, step = self.engine, SHAPE.step
        return EngineState(
            health=TargetHealth.HEALTHY,
            step=StepModel(step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s),
            running=engine.unfinished,
            waiting=0,
            context_tokens=engine.context_tokens,
            queued_prefill_tokens=engine.queued_prefill_tokens,
            kv_capacity_tokens=SHAPE.kv_capacity_tokens,
            kv_used_tokens=engine.kv_used_tokens,
            kv_promised_tokens=max(0, sum(self._held.values()) - engine.kv_used_tokens),
            kv_block_tokens=SHAPE.block_tokens,
            max_num_seqs=SHAPE.max_num_seqs,
            prefill_budget_tokens=SHAPE.prefill_budget_tokens,
        )

    def _idle(self) -> bool:
        asked = RoutingRequest(
            kind=RequestKind.CHAT, model="own", prompt_tokens=LINE_PROMPT,
            prompt_tokens_bound=LINE_PROMPT, max_tokens=LINE_OUTPUT,
            output=OutputMoments(0, LINE_OUTPUT, LINE_OUTPUT**2, LINE_OUTPUT),
        )  # fmt: skip
        candidate = Candidate(
            "pool:own/0", "own", frozenset(Feature), frozenset(RequestKind), SHAPE.context_tokens,
            internal=True, expected_pusd=0, bound_pusd=0, engine=self._state(),
        )  # fmt: skip
        decision = decide(asked, Policy(name="p"), [candidate])
        return bool(spare_decision(decision, {"own": PROMISED}, spill=False).order)


@cache
def seen(*, lines: bool, rule: bool = True) -> SeenTimes:
    return Scene(lines=lines, rule=rule).run()


def test_live_requests_keep_their_promises_beside_a_batch() -> None:
    alone, beside = seen(lines=False), seen(lines=True)
    assert min(len(beside.ttft_s), len(alone.ttft_s)) > 300
    assert 1000.0 * max(beside.ttft_s) <= PROMISED.ttft_ms, "not one first token is late"
    assert 1000.0 * max(beside.tpot_s) <= PROMISED.tpot_ms
    assert beside.p95_ms(beside.ttft_s) <= alone.p95_ms(alone.ttft_s) + 0.25 * PROMISED.ttft_ms


def test_the_idle_time_is_sold() -> None:
    """Beside 6,000 live tokens a second that keep their promises, the lines' are more than half."""
    beside = seen(lines=True)
    live = len(beside.ttft_s) * (LIVE_PROMPT + LIVE_OUTPUT)
    assert beside.line_tokens > 0.5 * live


def test_without_the_rule_first_tokens_come_late() -> None:
    """The negative control: the same lines, and only the runner's own limit."""
    bare = seen(lines=True, rule=False)
    late = [item for item in bare.ttft_s if 1000.0 * item > PROMISED.ttft_ms]
    assert len(late) > 0.5 * len(bare.ttft_s)
    assert bare.p95_ms(bare.ttft_s) > 10 * PROMISED.ttft_ms


@pytest.mark.parametrize("lines", [False, True])
def test_the_scene_repeats(lines: bool) -> None:
    assert Scene(lines=lines, rule=True).run() == seen(lines=lines)
