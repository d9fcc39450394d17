"""Recorded traffic through a policy in virtual time: pure, deterministic, no clock.

Each arrival advances the engines to its time, calls the chooser, and goes to an engine or to the
API. Feedback folds and bid prices run on their own ticks, as in production; ticks of idle times are
applied at once. The result has, for each request, its target and the times of its tokens.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from gateway.whatif.apis import ApiLatency
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine, ReplayRequest
from gateway.whatif.replay_roles import ReplayLeg
from gateway.whatif.traffic import Arrival
from router.bid_price import TICK_S
from router.recheck import PeerLoad
from router.types import Slo

_FOLD, _TICK, _ANSWER, _PATIENCE, _AGAIN, _LOOK = range(6)
_NO_PROMISE = Slo()
TOLD_EVERY = 500  # requests


@dataclass(slots=True)
class ReplayOutcome:
    """Result of one request: its engine (`None`: the API), TTFT and TPOT in seconds.

    `abandoned`: it was tried on an engine first and given up there. `waited_s` is the time in the
    gateway's queue, included in its TTFT. A refused request has no TTFT, and `choice` says why.
    """

    arrival: Arrival
    engine: str | None = None
    ttft_s: float = inf
    tpot_s: float = 0.0
    preemptions: int = 0
    abandoned: bool = False
    waited_s: float = 0.0
    choice: "ReplayChoice | None" = field(default=None, compare=False)

    def has_met_slo(self, slo: Slo) -> bool:
        return self.has_met_ttft(slo) and self.has_met_tpot(slo)

    def has_met_ttft(self, slo: Slo) -> bool:
        return slo.ttft_ms is None or 1000.0 * self.ttft_s <= slo.ttft_ms

    def has_met_tpot(self, slo: Slo) -> bool:
        return slo.tpot_ms is None or 1000.0 * self.tpot_s <= slo.tpot_ms


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """An engine to run on (`None`: the API), with the KV tokens that admission promises.

    Without a first token within `patience_s` the API is used instead; `api` is its name if there
    are several. `again_s`: the request waits, and is routed again after this time. `refused`: it
    never ran. `slo` is its own where classes share a model, `most_tokens` the length at which its
    answer is cut, `told` the chooser's own data. `stands` is called once when other workers' load
    is known, if that is delayed; a request without a first token that was sent in error then goes
    to the API. `hit_tokens` of the prompt are expected in the engine's prefix cache. `leg`: another
    engine reads the prompt. `best_effort`: no engine was forecast to keep the promise.
    """

    seat: ReplayEngine | None
    promised: int = 0
    final: int = 0
    patience_s: float = inf
    api: str = ""
    again_s: float | None = None
    refused: bool = False
    slo: Slo | None = None
    most_tokens: int | None = None
    told: object = None
    stands: Callable[[PeerLoad], bool] | None = None
    hit_tokens: int = 0
    leg: ReplayLeg | None = None
    best_effort: bool = False


class ReplayPolicyProtocol(Protocol):
    """A policy under test, as `PolicyReplay`; it must not read an arrival's actual output."""

    def choose(
        self, arrival: Arrival, seats: Sequence[ReplayEngine], now_s: float, worker: int, /
    ) -> ReplayChoice: ...

    def on_ended(self, outcome: ReplayOutcome) -> None:
        """Learn from a request that has ended."""

    def tick(self, seats: Sequence[ReplayEngine], now_s: float) -> None:
        """Update once a second."""


@dataclass(slots=True)
class Replay:
    """A replay. `slos` is by model; `answers` are the API's latencies in request order.

    With several APIs, `apis` has the latencies of each by name.
    """

    seats: Sequence[ReplayEngine]
    slos: dict[str, Slo]
    arrivals: Sequence[Arrival]
    answers: Sequence[ApiLatency]
    knowledge: EngineKnowledge = field(default_factory=EngineKnowledge)
    apis: Mapping[str, Sequence[ApiLatency]] = field(default_factory=dict)
    progress: Callable[[int], None] | None = None  # called with the number of arrivals
    outcomes: list[ReplayOutcome] = field(default_factory=list)
    _moves: list[tuple[float, int, int]] = field(default_factory=list)  # time, event, request index
    _order: list[ReplayEngine] = field(default_factory=list)
    _kept: dict[int, tuple[ReplayEngine, ReplayRequest]] = field(default_factory=dict)
    _waiting: int = 0  # requests that will be routed again

    def run(self, chooser: ReplayPolicyProtocol) -> list[ReplayOutcome]:
        """Replay all requests to their end; return the outcomes in order of arrival."""
        self.outcomes = [ReplayOutcome(arrival) for arrival in self.arrivals]
        self._order = sorted(self.seats, key=lambda seat: not seat.reads_for_others)
        if self.arrivals:
            first_s = self.arrivals[0].at_s
            self._moves = [(first_s, _FOLD, -1), (first_s, _TICK, -1)]
        for index, arrival in enumerate(self.arrivals):
            self._advance_until(arrival.at_s, chooser)
            self._route_arrival(index, arrival, arrival.at_s, chooser)
            if self.progress is not None and index % TOLD_EVERY == 0:
                self.progress(index)
        if self.progress is not None:
            self.progress(len(self.arrivals))
        self._moves = [move for move in self._moves if move[1] not in (_FOLD, _TICK)]
        heapq.heapify(self._moves)
        self._advance_until(inf, chooser)
        return self.outcomes

    def _route_arrival(
        self, index: int, arrival: Arrival, now_s: float, chooser: ReplayPolicyProtocol
    ) -> None:
        worker, outcome = index % self.knowledge.workers, self.outcomes[index]
        choice = outcome.choice = chooser.choose(arrival, self.seats, now_s, worker)
        if choice.refused:
            return
        if choice.again_s is not None:
            heapq.heappush(self._moves, (now_s + choice.again_s, _AGAIN, index))
            self._waiting += 1
            return
        outcome.waited_s = now_s - arrival.at_s
        if choice.most_tokens is not None and choice.most_tokens < arrival.output_tokens:
            outcome.arrival = arrival = arrival._replace(output_tokens=choice.most_tokens)
        if choice.seat is None:
            self._to_api(index, now_s)
            return
        slo = choice.slo or self.slos[arrival.model]
        leg = choice.leg
        hit_tokens = choice.hit_tokens if leg is None else arrival.prompt_tokens - 1
        flight = ReplayRequest(
            arrival, slo, now_s, choice.promised, choice.final, hit_tokens,
            is_moved=leg is not None, best_effort=choice.best_effort,
        )  # fmt: skip
        choice.seat.submit(str(index), flight, worker)
        if leg is not None:
            self._have_read(str(index), flight, leg)
        outcome.engine = choice.seat.name
        if choice.patience_s < inf:
            heapq.heappush(self._moves, (now_s + choice.patience_s, _PATIENCE, index))
        if choice.stands is not None and choice.seat.is_looked_at_again:
            heapq.heappush(self._moves, (now_s + self.knowledge.skew_s, _LOOK, index))

    def _have_read(self, name: str, flight: ReplayRequest, leg: ReplayLeg) -> None:
        reading = ReplayRequest(
            flight.arrival._replace(output_tokens=1), _NO_PROMISE, flight.started_s, leg.promised,
            leg.promised, leg.hit_tokens, is_read_only=True,
        )  # fmt: skip
        leg.seat.submit(name, reading, flight.worker)

    def _advance_until(self, until_s: float, chooser: ReplayPolicyProtocol) -> None:
        """Advance time, processing due events on the way."""
        moves = self._moves
        while moves and moves[0][0] <= until_s:
            at_s, what, index = heapq.heappop(moves)
            self._advance(at_s, chooser)
            if what == _FOLD:
                heapq.heappush(moves, (self._fold(at_s, until_s), what, -1))
            elif what == _TICK:
                chooser.tick(self.seats, at_s)
                periods = max(1, self._quiet(at_s, until_s, TICK_S))
                heapq.heappush(moves, (at_s + periods * TICK_S, what, -1))
            elif what == _ANSWER:
                chooser.on_ended(self.outcomes[index])
            elif what == _AGAIN:
                self._waiting -= 1
                self._route_arrival(index, self.arrivals[index], at_s, chooser)
            elif what == _LOOK:
                self._recheck_choice(index, at_s)
            else:
                self._abandon_engine(index, at_s)
        self._advance(until_s, chooser)

    def _fold(self, at_s: float, until_s: float) -> float:
        """Fold the feedback, and return when the next fold is due."""
        period_s = self.knowledge.tick_s
        folds = self._quiet(at_s, until_s, period_s)
        for seat in self.seats:
            seat.fold(at_s)
            if folds:
                seat.skip_folds(folds, period_s)
        return at_s + (folds + 1) * period_s

    def _quiet(self, at_s: float, until_s: float, period_s: float) -> int:
        """Return the number of periods before an engine changes or a decision is made."""
        if until_s == inf or self._waiting or any(seat.flights for seat in self.seats):
            return 0
        return int((until_s - at_s) / period_s)

    def _advance(self, until_s: float, chooser: ReplayPolicyProtocol) -> None:
        """Advance all engines; prefill engines first, so that handovers are in the interval."""
        for seat in self._order:
            for name, flight in seat.advance(until_s):
                if flight.is_read_only:
                    self._hand_over(int(name), flight, seat)
                    continue
                outcome = self.outcomes[int(name)]
                ttft_s, outcome.tpot_s = flight.latencies_s
                outcome.ttft_s = outcome.waited_s + ttft_s
                outcome.preemptions = flight.preemptions
                chooser.on_ended(outcome)
            while seat.fetched:
                name, at_s = seat.fetched.pop()
                self._free_kept(int(name), at_s)

    def _hand_over(self, index: int, flight: ReplayRequest, reader: ReplayEngine) -> None:
        """Move the KV of a read prompt to the engine that answers, if it still waits."""
        choice, read_s = self.outcomes[index].choice, flight.end_s
        assert choice is not None, "it was asked"
        assert choice.leg is not None, "who reads for it was chosen"
        assert read_s is not None, "it has been read"
        seat, moving_s = choice.seat, choice.leg.transfer_s
        if seat is not None and seat.receive(str(index), read_s, moving_s):
            self._kept[index] = reader, flight  # until its first token, as live
        else:
            reader.release(str(index), flight, read_s)

    def _free_kept(self, index: int, at_s: float) -> None:
        if index in self._kept:
            reader, flight = self._kept.pop(index)
            reader.release(str(index), flight, at_s)

    def _recheck_choice(self, index: int, at_s: float) -> None:
        """Recheck a choice when other workers' dispatches of its time are known."""
        outcome = self.outcomes[index]
        if outcome.engine is None or outcome.choice is None or outcome.choice.stands is None:
            return
        seat = self._seat_of(outcome)
        flight = seat.flights.get(str(index))
        if flight is not None and flight.first_s is None:
            missed = seat.missed_load(flight)
            if any(missed) and not outcome.choice.stands(missed):
                self._abandon_engine(index, at_s)

    def _abandon_engine(self, index: int, at_s: float) -> None:
        """Abort a request without a first token on its engine, and send it to the API."""
        outcome = self.outcomes[index]
        seat = self._seat_of(outcome)
        flight = seat.flights.get(str(index))
        if flight is not None and flight.first_s is None:
            seat.abort(str(index))
            leg = None if outcome.choice is None else outcome.choice.leg
            if leg is not None and str(index) in leg.seat.flights:
                leg.seat.abort(str(index))
            self._free_kept(index, at_s)
            outcome.engine, outcome.abandoned = None, True
            self._to_api(index, at_s)

    def _seat_of(self, outcome: ReplayOutcome) -> ReplayEngine:
        return next(seat for seat in self.seats if seat.name == outcome.engine)

    def _to_api(self, index: int, now_s: float) -> None:
        outcome, choice = self.outcomes[index], self.outcomes[index].choice
        answer = self.apis.get(choice.api if choice else "", self.answers)[index]
        further = outcome.arrival.output_tokens - 1
        outcome.ttft_s = now_s - outcome.arrival.at_s + answer.ttft_s
        outcome.tpot_s = answer.tpot_s if further > 0 else 0.0
        end_s = now_s + answer.ttft_s + further * answer.tpot_s
        heapq.heappush(self._moves, (end_s, _ANSWER, index))
