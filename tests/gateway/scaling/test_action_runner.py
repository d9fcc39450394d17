"""Steps done in their order: the books before the actuator, requests let in before a mark."""

import pytest

from gateway.scaling.action_runner import ActionRunner, PlannedWords
from gateway.scaling.actuator import ActuatorError
from gateway.scaling.reconcile import ActionVerb, FindingKind, FleetAction
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance

WORDS = PlannedWords(5, "earns_rent", "it earns", 7, 100, 1)
ROW = FleetInstance("p.0.k", "p", 0, True, InstanceRent(1), 1, told_us=3)


class Recorder:
    """Books, actuator and probe that write down what they are asked, in one list."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.changes: list = []

    def __getattr__(self, name: str):
        def note(*given, **marks):
            token = given[0] if given and isinstance(given[0], str | int) else ""
            self.said.append(" ".join([name, str(token), *sorted(marks)]).strip())
            if name in ("intend", "add"):
                self.changes.append(given)

        return note


@pytest.fixture
def runner():
    recorder = Recorder()
    made = ActionRunner("p", recorder, recorder, recorder, InstanceRent(1))
    made.recorder = recorder
    return made


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (FleetAction(ActionVerb.START, "p.1.k", 1), ["intend", "start p.1.k"]),
        (FleetAction(ActionVerb.ADOPT, "p.1.k", 1, "i-1"), ["intend", "start p.1.k"]),
        (FleetAction(ActionVerb.REPEAT_START, "p.0.k", 0), ["start p.0.k"]),
        (FleetAction(ActionVerb.DRAIN, "p.0.k", 0), ["intend", "keep_away 0"]),
        (FleetAction(ActionVerb.KEEP_AWAY, "p.0.k", 0), ["keep_away 0"]),
        (FleetAction(ActionVerb.STOP, "p.1.k", 1), ["mark p.1.k told_us", "stop p.1.k"]),
        (FleetAction(ActionVerb.STOP, "p.0.k", 0), ["stop p.0.k"]),  # it was told before
        (FleetAction(ActionVerb.READY, "p.0.k", 0, outcome="done"),
         ["let_in 0", "mark p.0.k ready_us"]),
        (FleetAction(ActionVerb.READY, "p.0.k", 0), ["mark p.0.k ready_us"]),  # it drains
        (FleetAction(ActionVerb.REVIVE, "p.0.k", 0), ["let_in 0", "mark p.0.k stop_us"]),
        (FleetAction(ActionVerb.SEEN, "p.0.k", 0, "i"), ["mark p.0.k name seen_us"]),
        (FleetAction(ActionVerb.GONE, "p.0.k", 0), ["mark p.0.k gone_us"]),
        (FleetAction(ActionVerb.REOPEN, "p.0.k", 0), ["mark p.0.k gone_us stop_us told_us"]),
        (FleetAction(ActionVerb.NAME_ORPHAN, "p!i", None, "i"), ["add"]),
    ],
)  # fmt: skip
def test_each_step_is_done_in_an_order_that_survives_a_death(runner, action, said):
    assert runner.run([action], WORDS, [ROW]) == []
    assert runner.recorder.said == said


def test_changes_say_which_engine_of_the_order_they_are(runner):
    runner.run(
        [
            FleetAction(ActionVerb.START, "p.1.k", 1), FleetAction(ActionVerb.START, "p.2.k", 2),
            FleetAction(ActionVerb.DRAIN, "p.0.k", 0, words="never came"),
        ],
        WORDS, [ROW],
    )  # fmt: skip
    kept = [given[0] for given in runner.recorder.changes]
    assert [(item.verb, item.engines) for item in kept] == [
        ("start", 2), ("start", 3), ("stop", 3),
    ]  # fmt: skip
    assert [item.sentence for item in kept] == ["it earns", "it earns", "never came"]
    assert (runner.starts, runner.stops) == (2, 1)


def test_what_an_actuator_refuses_is_told_and_the_rest_goes_on(runner, monkeypatch):
    def refuses(token: str, place: int) -> None:
        raise ActuatorError(f"no room for {place}")

    monkeypatch.setattr(runner.recorder, "start", refuses, raising=False)
    found = runner.run(
        [FleetAction(ActionVerb.START, "p.1.k", 1), FleetAction(ActionVerb.GONE, "p.0.k", 0),
         FleetAction(ActionVerb.STOP, "p!i", None)],
        WORDS, [ROW],
    )  # fmt: skip
    assert [(item.kind, item.words) for item in found] == [
        (FindingKind.REFUSED, "start of p.1.k: no room for 1"),
        (FindingKind.REFUSED, "stop of p!i: its place is not known"),
    ]
    assert "mark p.0.k gone_us" in runner.recorder.said
