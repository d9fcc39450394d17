"""Engines of a running host started and stopped by a plan: real processes, no stream cut."""

import pytest

from gateway.clock import Clock
from gateway.config.schema_scale import ScaleSection
from gateway.config.settings import load
from gateway.fleet.scaled_seats import read_tags
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.scaling import ScalingLoop
from gateway.runtime import Runtime
from gateway.scaling import pool_setup
from ledger.database import make_engine
from ledger.fleet.fleet_lease import give_lease_back
from ledger.fleet.fleet_reads import changes, instances_between
from ledger.fleet.scaling_notes import read_scaling
from ledger.verify.checks import verify
from router.types import TargetHealth

ENGINES = 4


class SizedHost:
    """A running host with a loop over it in this process."""

    def __init__(self, host, plan) -> None:
        self.host, self.plan = host, plan
        settings = load(host.config)
        self.runtime = Runtime.load(host.state / "run" / "runtime.json")
        scale = ScaleSection.model_validate(
            {"mode": "act", "max": ENGINES, "look_s": 0.05, "rent_usd_per_hour": "3"}
        )
        pool = settings.pools["main"].model_copy(update={"scale": scale})
        self.settings = settings.model_copy(update={"pools": {"main": pool}})
        self.board = SharedLoadTable(self.runtime.run_dir / "board", self.runtime.layout)
        self.ledger = make_engine(host.ledger)
        self.loop = self.new_loop()

    def new_loop(self) -> ScalingLoop:
        self.loop = ScalingLoop(
            self.settings, self.runtime, self.board, self.ledger, Clock(), lambda *_: self.plan
        )
        # What an engine can do is known to the planner of this test.
        self.loop._scalers["main"]._observer.refresh = lambda _: None
        self.loop._scalers["main"]._observer.classes = ()
        return self.loop

    def serving(self) -> list[int]:
        self.loop.step()
        return [
            row for row in range(ENGINES)
            if self.loop._probes["main"]._host.snapshot(row).state.health is TargetHealth.HEALTHY
        ]  # fmt: skip

    def words(self) -> list[str]:
        return [self.loop._probes["main"]._host.snapshot(row).word for row in range(ENGINES)]

    def rows(self):
        with self.ledger.connect() as connection:
            return instances_between(connection, "main", 0, Clock().wall_us() + 1)


@pytest.fixture
def sized(make_host, patiently, monkeypatch, scripted_plan):
    monkeypatch.setattr(pool_setup, "GRACE_US", 300_000)
    host = make_host(workers=1, engines=ENGINES)
    host.start()
    found = SizedHost(host, scripted_plan(ENGINES))
    patiently(lambda: len(found.serving()) == ENGINES)
    yield found
    found.board.close()
    found.ledger.dispose()


def test_engines_come_and_go_and_no_stream_is_cut(sized, crowd, patiently):
    patiently(lambda: sized.serving() and len([row for row in sized.rows() if row.ready_us]) == 4)
    adopted = sized.rows()
    assert [row.owned for row in adopted] == [True] * ENGINES
    with crowd(sized.host, clients=4) as (broken, whole):
        patiently(lambda: len(whole) >= 4)
        sized.plan.wanted = 1
        patiently(lambda: len(sized.serving()) == 1 and sized.words().count("resting") == 3)
        patiently(lambda: sized.serving() and sum(row.gone_us is None for row in sized.rows()) == 1)
        fewer = len(whole)
        sized.plan.wanted = 3
        patiently(lambda: len(sized.serving()) == 3)
        patiently(lambda: sized.serving() and not sized.loop._probes["main"].parked()[1:])
        patiently(lambda: len(whole) >= fewer + 8)
    assert broken == []
    with sized.ledger.connect() as connection:
        done = [(item.verb, item.outcome) for item in changes(connection, "main")]
        assert (
            sorted(done)
            == [("adopt", "done")] * 4 + [("start", "done")] * 2 + [("stop", "done")] * 3
        )
    assert [row.token for row in sized.rows() if not row.owned] == []
    note = read_scaling(sized.runtime.run_dir)["main"]
    assert (note.running, note.serving, note.findings["orphan"]) == (3, 3, 0)
    with sized.ledger.connect() as connection:
        assert verify(connection).findings == ()


def test_a_loop_that_is_killed_is_followed_by_one_that_finds_everything(sized, patiently):
    patiently(lambda: sized.serving() and len(sized.rows()) == ENGINES)
    sized.plan.wanted = 2

    def stops() -> int:
        sized.loop.step()
        with sized.ledger.connect() as connection:
            return sum(item.verb == "stop" for item in changes(connection, "main"))

    patiently(lambda: stops() == 2)  # it drains two, and is gone; its lease runs out
    give_lease_back(sized.ledger, "main", sized.loop._holder)
    sized.new_loop()
    patiently(lambda: len(sized.serving()) == 2 and sized.words().count("resting") == 2)
    patiently(lambda: sized.serving() and sum(row.gone_us is None for row in sized.rows()) == 2)
    assert len(sized.rows()) == ENGINES
    tags = read_tags(sized.host.state, "main")
    assert sorted(tag.is_up for tag in tags.values()) == [False, False, True, True]
