"""One of several replicas gets five times slower: it says so in nothing but its pace.

No error, metrics as ever, every token comes, late. Its steps, timed by the streams that run there,
tell all workers; requests go to the others, which keep their promise, and it is tried again a while
later, so that it gets its share once it is well. The control: with a step feedback that says
nothing, requests go on to be late there.
"""

import math
import socket
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import groupby

import pytest

from backends.simulator.profiles import PROFILES
from backends.stepmodel import FittedStepModel
from router.feedback import FeedbackLoops

ENGINE = "h200-llama-3.1-8b-fp8"
PLAYED = 10  # times slower than the measured engine, so that this machine is never waited for
REPLICAS, SLOWER = 3, 5.0
PER_S, TOKENS = 8.0, 24
PROMISE = {"ttft_ms": 2000, "tpot_ms": 120, "attainment": 0.99}
RULE = {"name": "chat", "slo": PROMISE, "otherwise": "best_effort"}
FOUND_S, BEFORE_S = 2.0, 6.0
SICK = "pool:main/0"
AGAIN = 0.03  # of those that came later may have tried whether it is well

pytestmark = pytest.mark.long


def free_ports(count: int) -> list[int]:
    with ExitStack() as open_:
        probes = [open_.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


@pytest.fixture
def played_slowly(monkeypatch) -> None:
    profile = PROFILES[ENGINE]
    slow = FittedStepModel(**{name: PLAYED * s for name, s in asdict(profile.shape.step).items()})
    monkeypatch.setitem(
        PROFILES, ENGINE, replace(profile, shape=replace(profile.shape, step=slow, pace=None))
    )


@pytest.fixture
def replicas(played_slowly, run_stack, stranger_on, patiently):
    """(host, its engines)."""
    ports = free_ports(REPLICAS)
    engines = [stranger_on(port, "llama") for port in ports]

    def behind(found, _ports) -> None:
        found["pools"]["main"]["engine"]["endpoints"] = [
            f"http://127.0.0.1:{port}/v1" for port in ports
        ]
        found["policies"] = [RULE]

    with run_stack(adjust=behind) as stack:
        patiently(lambda: all(stack.board.published(row)[10] for row in range(REPLICAS)))
        yield stack, engines


def at_speed(engine, speed: float) -> None:
    """From this moment on: an engine whose GPU got slow under it, or is well again."""
    pacer = engine._engine.pacer

    def change() -> None:
        pacer.catch_up()
        now_s = pacer.now_s
        pacer._origin_s, pacer._speed = pacer._loop.time() - now_s / speed, speed
        pacer._schedule()

    pacer._loop.call_soon_threadsafe(change)


def late(item) -> bool:
    tpot_ms = 1e3 * (item.took_s - item.first_s) / (TOKENS - 1)
    return 1e3 * item.first_s > PROMISE["ttft_ms"] or tpot_ms > PROMISE["tpot_ms"]


class WatchedCrowd:
    """A crowd that asks for so long, until all are answered."""

    def __init__(self, stack, crowd, patiently) -> None:
        self._stack, self._crowd, self._patiently = stack, crowd, patiently

    def begin(self, seconds: float):
        stack = self._stack
        return self._crowd.ask(
            stack.port, PER_S, seconds, stack.token, model="own", max_tokens=TOKENS, ignore_eos=True
        )

    def ended(self, asked, seconds: float):
        count = round(PER_S * seconds)
        self._patiently(
            lambda: len(asked) == count and all(request.took_s for request in asked), seconds + 120
        )
        assert {request.status for request in asked} == {200}
        assert all(request.whole for request in asked)
        return asked

    def ask(self, seconds: float):
        return self.ended(self.begin(seconds), seconds)

    def works(self, asked, backend: str) -> bool:
        """Whether one of them is being written there at this moment."""
        return any(request.backend == backend and request.took_s is None for request in asked)


def by_second(asked, backend: str, begun_s: float) -> dict[int, tuple[int, int]]:
    """Of each second's requests: how many went there, and how many of all came late."""
    return {
        second: (sum(item.backend == backend for item in some), sum(map(late, some)))
        for second, some in (
            (second, list(group))
            for second, group in groupby(asked, lambda request: math.floor(request.at_s - begun_s))
        )
    }


def falls_behind(watched, engines, patiently, sick_s: float):
    """(asked, when one of the engines got slow under a stream): some were asked before."""
    watched.ask(4.0)
    seconds = sick_s + BEFORE_S
    during = watched.begin(seconds)
    patiently(lambda: watched.works(during, SICK), BEFORE_S)
    begun_s = time.monotonic()
    at_speed(engines[0], 1.0 / SLOWER)
    watched.ended(during, seconds)
    for second, (there, behind) in by_second(during, SICK, begun_s).items():
        print(f"  second {second}: {there} of {PER_S:.0f} to the slow one, {behind} late")
    return during, begun_s


def after_found(asked, begun_s: float):
    """What was asked once there was time to see it."""
    return [request for request in asked if request.at_s - begun_s > FOUND_S]


def to(asked, row: int) -> int:
    return sum(request.backend == f"pool:main/{row}" for request in asked)


@pytest.mark.parametrize("sick_s", [8.0, 60.0])
def test_a_slow_replica_is_found_left_alone_and_taken_back(
    replicas, crowd, patiently, sick_s: float
) -> None:
    stack, engines = replicas
    watched = WatchedCrowd(stack, crowd, patiently)
    print()
    during, begun_s = falls_behind(watched, engines, patiently, sick_s)
    later = after_found(during, begun_s)
    at_speed(engines[0], 1.0)
    well_s = time.monotonic()

    def is_back() -> bool:
        return to(watched.ask(2.0), 0) >= 2.0 * PER_S / REPLICAS / 2

    patiently(is_back, 90)
    print(f"  {to(during, 0)} of {len(during)} went there, {to(later, 0)} after {FOUND_S:.0f} s; "
          f"back {time.monotonic() - well_s:.1f} s after it was well")  # fmt: skip
    assert to(later, 0) <= AGAIN * len(later), "but for those that try whether it is well"
    assert sum(map(late, later)) <= 0.1 * len(later), "the others are not run over"


def test_without_step_feedback_requests_go_on_to_be_late(
    replicas, crowd, patiently, monkeypatch
) -> None:
    """The negative control."""
    stack, engines = replicas
    monkeypatch.setattr(FeedbackLoops, "fold", lambda *_: None)
    print()
    during, begun_s = falls_behind(WatchedCrowd(stack, crowd, patiently), engines, patiently, 8.0)
    later = after_found(during, begun_s)
    there = [item for item in later if item.backend == SICK]
    print(f"  without: {len(there)} of {len(later)} went there, {sum(map(late, there))} late")
    assert len(there) > 2 * AGAIN * len(later)
    assert all(map(late, there))
