"""Virtual time: the same every time, every request to its end, what gives up goes to the API."""

from math import inf

import pytest

from backends.simulator.latency import Latency
from gateway.whatif.apis import draw_latencies
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayChoice, ReplayOutcome
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine
from gateway.whatif.traffic import Arrival
from router.types import Slo

SLO = Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99)


class FixedChoice:
    """Always the same choice; remembers what it was told."""

    def __init__(self, patience_s: float | None = inf) -> None:
        self.patience_s = patience_s
        self.seen: list[ReplayOutcome] = []
        self.ticks: list[float] = []

    def choose(self, arrival, seats, now_s, worker):
        if self.patience_s is None:
            return ReplayChoice(None)
        return ReplayChoice(seats[0], arrival.prompt_tokens, 2000, self.patience_s)

    def on_ended(self, outcome) -> None:
        self.seen.append(outcome)

    def tick(self, seats, now_s) -> None:
        self.ticks.append(now_s)


def replayed(shape, arrivals, chooser) -> list[ReplayOutcome]:
    seats = [ReplayEngine("pool:own/0", shape, EngineKnowledge())]
    return Replay(seats, {"chat": SLO}, arrivals, draw_latencies(len(arrivals), Latency(), 1)).run(
        chooser
    )


def test_every_request_ends_once_and_in_the_order_of_asking(shape, poisson) -> None:
    arrivals, chooser = poisson(5.0, 200), FixedChoice()
    outcomes = replayed(shape, arrivals, chooser)
    assert [outcome.arrival for outcome in outcomes] == arrivals
    assert sorted(map(id, chooser.seen)) == sorted(map(id, outcomes))
    assert all(outcome.engine == "pool:own/0" and outcome.ttft_s < 1.0 for outcome in outcomes)
    assert all(outcome.has_met_slo(SLO) for outcome in outcomes)
    assert outcomes == replayed(shape, arrivals, FixedChoice())
    assert chooser.ticks == pytest.approx(
        [arrivals[0].at_s + second for second in range(len(chooser.ticks))]
    )


def test_the_api_answers_in_its_drawn_time(shape, poisson) -> None:
    arrivals = poisson(5.0, 50)
    outcomes = replayed(shape, arrivals, FixedChoice(None))
    for outcome, answer in zip(outcomes, draw_latencies(50, Latency(), 1), strict=True):
        assert (outcome.engine, outcome.ttft_s) == (None, answer.ttft_s)


def test_an_overloaded_engine_breaks_its_promises(shape, poisson) -> None:
    outcomes = replayed(shape, poisson(60.0, 600), FixedChoice())
    assert sum(outcome.has_met_slo(SLO) for outcome in outcomes) < 400


def test_who_waited_too_long_is_taken_to_the_api(shape) -> None:
    arrivals = [Arrival(0.001 * place, 20_000, 5, "chat") for place in range(5)]
    outcomes = replayed(shape, arrivals, FixedChoice(1.0))
    assert [outcome.engine is None for outcome in outcomes] == [False, True, True, True, True]
    assert [outcome.abandoned for outcome in outcomes] == [False, True, True, True, True]
    assert all(outcome.ttft_s > 1.0 for outcome in outcomes[1:])


class Twice(FixedChoice):
    """Whoever finds that another worker was there first goes to the API."""

    def choose(self, arrival, seats, now_s, worker):
        return ReplayChoice(
            seats[0], arrival.prompt_tokens, 2000, stands=lambda missed: missed.sequences == 0.0
        )


def test_who_was_sent_while_others_sent_is_looked_at_again(shape) -> None:
    knowledge = EngineKnowledge(workers=2, skew_s=0.05)
    arrivals = [
        Arrival(at_s, 20_000, 5, "chat") for at_s in (1.0, 1.01, 1.02, 1.2, 1.26, 1.27, 1.4)
    ]
    seats = [ReplayEngine("pool:own/0", shape, knowledge)]
    answers = draw_latencies(len(arrivals), Latency(), 1)
    outcomes = Replay(seats, {"chat": SLO}, arrivals, answers, knowledge).run(Twice())
    # in turns by worker: the third saw the second, which had seen the first; the sixth the fifth
    assert [outcome.abandoned for outcome in outcomes] == [
        False,
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert outcomes[1].ttft_s == pytest.approx(0.05 + answers[1].ttft_s)


def test_a_promise_of_nothing_is_always_kept() -> None:
    outcome = ReplayOutcome(Arrival(0.0, 1, 1, "chat"), None, ttft_s=99.0, tpot_s=9.0)
    assert outcome.has_met_slo(Slo())
    assert not outcome.has_met_ttft(SLO)
    assert not outcome.has_met_tpot(SLO)


def test_nothing_asked_is_nothing_answered(shape) -> None:
    assert replayed(shape, [], FixedChoice()) == []


class SteppingReplay(Replay):
    """Through every second of a lull."""

    def _quiet(self, at_s: float, until_s: float, period_s: float) -> int:
        return 0


@pytest.mark.parametrize("rule", ["tight", "queued"])
def test_a_lull_is_passed_at_once_and_leaves_what_its_seconds_would(
    house, under, poisson, rule
) -> None:
    """Bursts, pairs and single requests, so that factors, rates and the market have moved."""
    burst = poisson(60.0, 150)
    lone = [item._replace(at_s=20.0 + 33 * place) for place, item in enumerate(poisson(1.0, 12))]
    again = [item._replace(at_s=460.0 + item.at_s) for item in poisson(20.0, 100, seed=2)]
    arrivals = [*burst, *lone, *again]
    apis = {"openai/mini": draw_latencies(len(arrivals), Latency(), 1)}
    found, factors = [], []
    for kind in (SteppingReplay, Replay):
        planned = PolicyReplay(house, under(rule), arrivals[-1].at_s)
        outcomes = kind(planned.seats, {}, arrivals, (), apis=apis).run(planned)
        found.append(
            [
                (outcome.engine, outcome.ttft_s, outcome.tpot_s, outcome.waited_s)
                for outcome in outcomes
            ]
        )
        loops = planned.seats[0].loops
        factors.append([loops.step_feedback, loops.safety_ttft, loops.safety_tpot])
    for finding, other in zip(*found, strict=True):
        assert finding[0] == other[0]
        assert finding[1:] == pytest.approx(other[1:])
    assert factors[0] == pytest.approx(factors[1])


def test_a_month_of_few_requests_is_as_few_steps(shape, monkeypatch) -> None:
    """Work is by the request, not by the second: a month has 2,592,000 of them."""
    arrivals = [Arrival(129.6 * place, 800, 30, "chat") for place in range(2_000)]
    chooser, folds, advances = FixedChoice(), [], []
    fold, advance = ReplayEngine.fold, ReplayEngine.advance
    monkeypatch.setattr(ReplayEngine, "fold", lambda seat, at_s: folds.append(fold(seat, at_s)))
    monkeypatch.setattr(
        ReplayEngine, "advance", lambda seat, at_s: advances.append(at_s) or advance(seat, at_s)
    )
    outcomes = replayed(shape, arrivals, chooser)
    assert all(outcome.has_met_slo(SLO) for outcome in outcomes)
    assert len(chooser.ticks) <= 4 * len(arrivals)
    assert len(folds) <= 4 * len(arrivals)
    assert len(advances) <= 9 * len(arrivals)
