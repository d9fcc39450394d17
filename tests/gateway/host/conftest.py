"""Clients that keep asking while engines come and go, and a planner that a test moves."""

import contextlib
import threading

import pytest

from router.scaling.plan import EngineWorth, ScalePlan, ScaleReason

STREAM = {"messages": [{"role": "user", "content": "x"}], "stream": True, "ignore_eos": True}


@pytest.fixture
def stream():
    """Return the body of a stream that lasts as long as its `max_tokens`."""
    return STREAM


@pytest.fixture
def crowd():
    """Return what begins a crowd at a host."""
    return _crowd


@contextlib.contextmanager
def _crowd(served, clients: int):
    """Streams one after the other; yields what broke, and how many were whole."""
    over, broken, whole = threading.Event(), [], []

    def ask() -> None:
        while not over.is_set():
            try:
                answer = served.ask(**STREAM, max_tokens=120)
            except Exception as error:  # noqa: BLE001  (whatever breaks is what is looked for)
                broken.append(repr(error))
                continue
            (whole if answer.text.rstrip().endswith("[DONE]") else broken).append(answer.text[-99:])

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield broken, whole
    finally:
        over.set()
        for thread in threads:
            thread.join()


class ScriptedPlan:
    """Wants what the test says."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted

    def observe(self, window: object) -> None:
        pass

    def memory(self) -> dict[str, object]:
        return {"wanted": self.wanted}

    def plan(self, state) -> ScalePlan:
        worth = EngineWorth(self.wanted + 1, 3 * 10**12, 10**12)
        return ScalePlan(
            "main", state.at_us, self.wanted, len(state.engines), (), 600.0, None, worth, (), (),
            ScaleReason.EARNS_RENT, "as the test wants", state.at_us,
        )  # fmt: skip


@pytest.fixture
def scripted_plan():
    """Return what makes a planner that wants so many engines, until the test says otherwise."""
    return ScriptedPlan
