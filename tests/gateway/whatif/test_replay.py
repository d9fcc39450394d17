"""Virtual time: the same every time, every request to its end, what gives up goes to the API."""

from math import inf

import pytest

from backends.simulator.latency import Latency
from gateway.whatif.apis import draws
from gateway.whatif.replay import AT_THE_API, Choice, Outcome, Replay
from gateway.whatif.seats import Knowledge, Seat
from gateway.whatif.traffic import Arrival
from router.types import Slo

SLO = Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99)


class Fixed:
    """Always the same choice; remembers what it was told."""

    def __init__(self, patience_s: float | None = inf) -> None:
        self.patience_s = patience_s
        self.seen: list[Outcome] = []
        self.ticks: list[float] = []

    def choose(self, arrival, seats, now_s, worker):
        if self.patience_s is None:
            return AT_THE_API
        return Choice(seats[0], arrival.prompt_tokens, 2000, self.patience_s)

    def ended(self, outcome) -> None:
        self.seen.append(outcome)

    def tick(self, seats, now_s) -> None:
        self.ticks.append(now_s)


def replayed(shape, arrivals, chooser) -> list[Outcome]:
    seats = [Seat("pool:own/0", shape, Knowledge())]
    return Replay(seats, {"chat": SLO}, arrivals, draws(len(arrivals), Latency(), 1)).run(chooser)


def test_every_request_ends_once_and_in_the_order_of_asking(shape, poisson) -> None:
    arrivals, chooser = poisson(5.0, 200), Fixed()
    outcomes = replayed(shape, arrivals, chooser)
    assert [one.arrival for one in outcomes] == arrivals
    assert sorted(map(id, chooser.seen)) == sorted(map(id, outcomes))
    assert all(one.engine == "pool:own/0" and one.ttft_s < 1.0 for one in outcomes)
    assert all(one.kept(SLO) for one in outcomes)
    assert outcomes == replayed(shape, arrivals, Fixed())
    assert chooser.ticks == pytest.approx(
        [arrivals[0].at_s + second for second in range(len(chooser.ticks))]
    )


def test_the_api_answers_in_its_drawn_time(shape, poisson) -> None:
    arrivals = poisson(5.0, 50)
    outcomes = replayed(shape, arrivals, Fixed(None))
    for outcome, answer in zip(outcomes, draws(50, Latency(), 1), strict=True):
        assert (outcome.engine, outcome.ttft_s) == (None, answer.ttft_s)


def test_an_overloaded_engine_breaks_its_promises(shape, poisson) -> None:
    outcomes = replayed(shape, poisson(60.0, 600), Fixed())
    assert sum(one.kept(SLO) for one in outcomes) < 400


def test_who_waited_too_long_is_taken_to_the_api(shape) -> None:
    arrivals = [Arrival(0.001 * place, 20_000, 5, "chat") for place in range(5)]
    outcomes = replayed(shape, arrivals, Fixed(1.0))
    assert [one.engine is None for one in outcomes] == [False, True, True, True, True]
    assert [one.abandoned for one in outcomes] == [False, True, True, True, True]
    assert all(one.ttft_s > 1.0 for one in outcomes[1:])


def test_a_promise_of_nothing_is_always_kept() -> None:
    outcome = Outcome(Arrival(0.0, 1, 1, "chat"), None, ttft_s=99.0, tpot_s=9.0)
    assert outcome.kept(Slo())
    assert not outcome.kept_ttft(SLO)
    assert not outcome.kept_tpot(SLO)


def test_nothing_asked_is_nothing_answered(shape) -> None:
    assert replayed(shape, [], Fixed()) == []
