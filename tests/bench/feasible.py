"""A clairvoyant's schedule that the engines can play: how near to the bound anybody came.

The bound divides requests between engines and APIs and cuts steps at will. Here its shares are
rounded to a plan, which runs in the simulated engines step by step; then the plan is searched. In
every other stretch of time one request goes elsewhere or waits before it is sent, and what did the
value kept there good stays. The plan knows all lengths and arrivals, so a policy that reaches it
has nothing to learn; what it does not reach may still be possible.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from cells import ATTAINMENT, Cell
from trial import usd

from backends.simulator.latency import Latency
from gateway.whatif.apis import draw_latencies
from gateway.whatif.replay import Replay, ReplayChoice, ReplayOutcome
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine
from gateway.whatif.traffic import Arrival

STRETCH_S = 2.0  # whose requests are judged together; every second one has a move
REACH_S = 2.0  # after a stretch, in which its move may still be felt
WAITS_S = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)  # of the promise of a first token, at half a second
Plan = dict[int, float]  # how long each request waits that goes to the engines


@dataclass
class PlannedFleet:
    """Sends whom a plan names to the engine with the fewest in flight, the rest to the API."""

    plan: Plan
    _numbers: dict[int, int] = field(default_factory=dict)  # by the identity of an arrival
    _waited: set[int] = field(default_factory=set)

    def choose(
        self, arrival: Arrival, seats: Sequence[ReplayEngine], _now_s: float, _worker: int
    ) -> ReplayChoice:
        number = self._numbers.setdefault(id(arrival), len(self._numbers))
        wait_s = self.plan.get(number)
        if wait_s is None:
            return ReplayChoice(None)
        if wait_s > 0.0 and number not in self._waited:
            self._waited.add(number)
            return ReplayChoice(None, again_s=wait_s)
        seat = min(seats, key=lambda each: len(each.flights))
        return ReplayChoice(seat, arrival.prompt_tokens + arrival.output_tokens, 0)

    def on_ended(self, outcome: ReplayOutcome) -> None: ...

    def tick(self, seats: Sequence[ReplayEngine], now_s: float) -> None: ...


@dataclass
class Search:
    """Of one cell's plan; `best` is the most dollars found with enough promises kept."""

    cell: Cell
    arrivals: list[Arrival]
    seed: int
    plan: Plan
    best: float = 0.0

    def run(self, rounds: int) -> float:
        """Return the dollars of the best plan."""
        rng = random.Random(self.seed)
        kept = self._trimmed(self._played(self.plan))
        for number in range(rounds):
            moved = dict(self.plan)
            stretches = self._moves(rng, moved, number)
            after = self._played(moved)
            for begins_s, touched in stretches:
                ends_s = begins_s + STRETCH_S + REACH_S
                if self._worth(after, begins_s, ends_s) > self._worth(kept, begins_s, ends_s):
                    for index in touched:
                        self._set(self.plan, index, moved.get(index))
            kept = self._trimmed(self._played(self.plan))
        return self.best

    def _trimmed(self, outcomes: list[ReplayOutcome]) -> list[ReplayOutcome]:
        """Whoever misses a promise avoids nothing, and goes elsewhere until few enough are left."""
        while True:
            missed = [
                index for index, item in enumerate(outcomes)
                if item.engine is not None and not item.has_met_slo(self.cell.slo)
            ]  # fmt: skip
            if len(missed) <= (1.0 - ATTAINMENT) * len(self.plan):
                self.best = max(self.best, self._worth(outcomes, 0.0, float("inf")))
                return outcomes
            for index in missed:
                del self.plan[index]
            outcomes = self._played(self.plan)

    def _moves(self, rng: random.Random, moved: Plan, number: int) -> list[tuple[float, list[int]]]:
        """One in every second stretch: who comes, who leaves, who waits; or two of these."""
        shift_s = rng.uniform(0.0, 2.0 * STRETCH_S)
        stretches: dict[int, list[int]] = {}
        for index, arrival in enumerate(self.arrivals):
            place = int((arrival.at_s + shift_s) / STRETCH_S)
            if place % 2 == 0:
                stretches.setdefault(place, []).append(index)
        found = []
        for place, members in stretches.items():
            touched = rng.sample(members, min(len(members), 1 + number % 2))
            for index in touched:
                inside = index in self.plan
                wait_s = rng.choice((0.0, *WAITS_S))
                leaves = inside and rng.random() < 0.3
                self._set(moved, index, None if leaves else wait_s)
            found.append((place * STRETCH_S - shift_s, touched))
        return found

    @staticmethod
    def _set(plan: Plan, index: int, wait_s: float | None) -> None:
        if wait_s is None:
            plan.pop(index, None)
        else:
            plan[index] = wait_s

    def _worth(self, outcomes: list[ReplayOutcome], begins_s: float, ends_s: float) -> float:
        return sum(
            usd(self.cell, item.arrival) for item in outcomes
            if begins_s <= item.arrival.at_s < ends_s
            and item.engine is not None and item.has_met_slo(self.cell.slo)
        )  # fmt: skip

    def _played(self, plan: Plan) -> list[ReplayOutcome]:
        cell, knowledge = self.cell, EngineKnowledge(loops=False)
        seats = [
            ReplayEngine(f"pool:own/{place}", cell.shape, knowledge)
            for place in range(cell.engines)
        ]
        slos = dict.fromkeys(cell.prices, cell.slo)
        answers = draw_latencies(len(self.arrivals), Latency(), self.seed)
        return Replay(seats, slos, self.arrivals, answers, knowledge).run(PlannedFleet(dict(plan)))
