"""The scaling process killed at every step: no instance unnamed, no rent unseen.

Three journals are compared: the books, the cloud's own bill, and the changes of the plan. The
control acts before it writes, and is caught.
"""

from collections.abc import Callable

import pytest
from sqlalchemy import event

from gateway.scaling import pool_scaler
from gateway.scaling.action_runner import ActionRunner
from gateway.scaling.reconcile import FleetAction
from ledger.fleet.fleet_reads import changes

WANTED = (2, 2, 2, 2, 2, 1, 1, 1, 1)  # by steps of 40 seconds
STEP_S = 40
CALM = 8  # steps after which nothing is under way


class SuddenDeath(BaseException):
    """The process is gone: nothing of it runs on."""


class KillSwitch:
    """Counts the moments at which a process can die, and dies at one of them."""

    def __init__(self, at: int | None) -> None:
        self.at, self.count, self.where = at, 0, ""
        self.by_step: list[int] = []  # the moments until the end of each step

    def tick(self, where: str) -> None:
        self.count += 1
        if self.count == self.at:
            self.where = where
            raise SuddenDeath(where)


class HastyRunner(ActionRunner):
    """Acts first and writes afterwards, as a control."""

    def _begin(self, action: FleetAction, words: object) -> None:
        self._actuator.start(action.token, action.place or 0)
        super()._begin(action, words)


def play(world, at: int | None) -> tuple[KillSwitch, list[str]]:
    """Play the day, with one death; return what the books lack at any time and at the end."""
    switch = KillSwitch(at)
    world.cloud.faults.tick = switch.tick

    def dies_before_a_commit(_connection: object) -> None:
        switch.tick("before a commit")

    event.listen(world.ledger, "commit", dies_before_a_commit)
    lacking: list[str] = []
    try:
        for wanted in (*WANTED, *[WANTED[-1]] * CALM):
            world.planner.wanted = wanted
            try:
                world.step(seconds=STEP_S)
            except SuddenDeath:
                lacking += world.unseen()
                world.now_us += 61 * 1_000_000  # the lease of the dead runs out
                world.new_scaler()
            lacking += world.unseen()
            switch.by_step.append(switch.count)
    finally:
        event.remove(world.ledger, "commit", dies_before_a_commit)
    return switch, lacking


def judge(world, where: str) -> None:
    """Nothing is left over: the cloud runs what is wanted, and every change has an end."""
    running = {engine.token for engine in world.cloud.running}
    live = {token for token, row in world.rows().items() if row.gone_us is None}
    assert (len(running), running) == (WANTED[-1], live), where
    with world.ledger.connect() as connection:
        kept = changes(connection, "p")
    assert [item for item in kept if item.outcome is None] == [], where
    for item in kept:
        assert item.token in world.rows(), where
    tokens = [engine.token for engine in world.cloud.engines]
    assert len(tokens) == len(set(tokens)), where


@pytest.fixture
def anew(world, ledger) -> Callable:
    """A world whose ledger is empty again."""
    from sqlalchemy import delete  # noqa: PLC0415  (beside its one use)

    from ledger.orm import scaling as orm  # noqa: PLC0415  (as above)

    tables = (
        orm.FleetChangeRow, orm.FleetHourRow, orm.FleetInstanceRow, orm.FleetLeaseRow,
        orm.FleetPlanRow, orm.FleetPoolRow,
    )  # fmt: skip

    def make():
        with ledger.begin() as connection:
            for table in tables:
                connection.execute(delete(table))
        return world()

    return make


@pytest.mark.parametrize("calm", [2, pytest.param(CALM, marks=pytest.mark.long)])
def test_killed_at_every_moment_it_leaves_nothing_unnamed_and_no_rent_unseen(anew, calm):
    """Calm steps are alike: at every commit it dies in the first two of them only."""
    whole = anew()
    undisturbed, lacking = play(whole, None)
    assert lacking == []
    judge(whole, "undisturbed")
    kinds, last = set(), undisturbed.by_step[len(WANTED) + calm - 1]
    for at in range(1, last + 1):
        world = anew()
        switch, lacking = play(world, at)
        assert lacking == [], f"killed at {at}, {switch.where}"
        judge(world, f"killed at {at}, {switch.where}")
        kinds.add(switch.where.rsplit(" p.", 1)[0])
    assert kinds == {
        "before a commit", "before start", "after start", "before stop", "after stop",
    }  # fmt: skip


def test_a_runner_that_acts_before_it_writes_is_caught(anew, monkeypatch):
    monkeypatch.setattr(pool_scaler, "ActionRunner", HastyRunner)
    caught = []
    for at in range(1, 60):
        world = anew()
        _, lacking = play(world, at)
        caught += lacking
        if caught:
            break
    assert any("has no row" in words for words in caught)
