"""A pool's scaler in virtual time: intents before acts, and the faults of actuators."""

import pytest

from deploy.standin_cloud import RentedEngine
from gateway.host.scaling import make_planner
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_lease import take_lease
from ledger.fleet.fleet_reads import (
    changes,
    open_instances,
    planner_memory,
    plans,
    scored_whole,
)
from ledger.fleet.fleet_records import FleetChange, FleetInstance
from ledger.fleet.scaling_books import ScalingBooks

S = 1_000_000
USD = 10**12


def done(world) -> list[tuple[str, str | None]]:
    with world.ledger.connect() as connection:
        return [(item.verb, item.outcome) for item in reversed(changes(connection, "p"))]


def test_engines_come_and_go_as_the_plan_wants_and_all_of_it_is_in_the_books(world):
    world = world()
    world.planner.wanted = 2
    world.step(times=6)
    assert len(world.cloud.running) == 2
    world.planner.wanted = 1
    world.cloud.busy_places = {0, 1}
    world.step(seconds=10, times=2)
    assert len(world.cloud.running) == 2  # a stream is under way, so nothing is stopped
    world.cloud.busy_places = {0}
    note = world.step(times=5)
    assert (len(world.cloud.running), note.running, note.wanted) == (1, 1, 1)
    assert world.cloud.cut == 0
    assert done(world) == [("start", "done"), ("start", "done"), ("stop", "done")]
    assert world.unseen() == []
    with world.ledger.connect() as connection:
        last, *_ = changes(connection, "p")
    assert last.expected_pusd == -2 * USD  # by the alternatives: one engine less costs two more
    assert "earn their rent" in last.sentence


def test_advice_starts_nothing_and_is_scored_as_if_it_had_been_followed(world):
    world = world(mode="advise")
    world.planner.wanted = 2
    note = world.step(times=20)
    assert world.cloud.engines == []
    assert (note.wanted, note.running, note.starts) == (2, 0, 2)
    with world.ledger.connect() as connection:
        whole = scored_whole(connection, "p")
        advised = changes(connection, "p")
        assert [item.mode for item in advised] == ["advise"] * 2
        assert len(plans(connection, "p")) == 2
    # 120 requests a minute of 0.5 s each keep 60 s of engine time busy; one engine gives 51.
    assert whole.covered_us == 540 * S  # whole minutes, from the one of the first advice on
    assert whole.ran.rent_pusd == 0
    assert whole.ran.api_pusd == whole.all_api.api_pusd == 9 * 120 * 10**10
    assert 0 < whole.advised.api_pusd < whole.ran.api_pusd
    assert whole.advised.rent_pusd == 2 * 3 * USD * 510 // 3600  # from the asking, at 30 s
    first, second = sorted(advised, key=lambda item: item.engines)
    assert first.realised_pusd > 0  # it avoids 1.02 USD a minute and costs 0.05
    assert first.realised_pusd > second.realised_pusd


def test_the_planner_goes_on_from_what_the_last_holder_knew(world):
    world = world()
    world.step(times=4)
    seen = len(world.planner.windows)
    assert seen >= 5  # the five minutes before it began, and its own
    with world.ledger.connect() as connection:
        memory = planner_memory(connection, "p")
    assert memory.memory == {"windows": seen}
    world.new_scaler()
    world.step(seconds=61)
    world.step(seconds=61)
    assert len({window.ends_us for window in world.planner.windows}) == len(world.planner.windows)


def test_who_does_not_hold_the_lease_acts_not_and_says_who_does(world):
    world = world()
    world.planner.wanted = 1
    first = world.scaler
    world.step()
    world.new_scaler()
    note = world.step(seconds=1)
    assert note.held == "host:1 holds the lease"
    assert len(world.cloud.engines) == 1
    world.step(seconds=70)
    assert len(world.cloud.engines) == 1
    world.planner.wanted = 2
    assert first.step().held == "host:2 holds the lease"
    assert len(world.cloud.engines) == 1


def test_a_pause_holds_and_a_resume_goes_on(world):
    world = world()
    world.planner.wanted = 1
    world.cloud.pause = "paused by ann: audit"
    note = world.step(times=3)
    assert world.cloud.engines == []
    assert "paused by ann" in note.held
    world.cloud.pause = None
    assert world.step().held is None
    assert len(world.cloud.engines) == 1


def test_no_start_goes_beyond_the_days_rent(world):
    world = world(limit_usd_per_day="1")
    world.planner.wanted = 3
    note = world.step(times=3)
    with world.ledger.connect() as connection:
        assert changes(connection, "p") == []
    assert note.findings["limited"] == 1
    assert "the day's rent is at its limit" in note.words[0]


def test_quiet_times_hold(world):
    world = world(quiet=[{"starts": "00:00", "ends": "24:00"}])
    world.planner.wanted = 1
    assert "quiet time" in world.step(times=2).held
    assert world.cloud.engines == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("hangs_before", "refused"), ("hangs_after", "refused"), ("list_hangs", "unreachable"),
        ("starts_two", "duplicate"), ("never_ready", "never_ready"),
    ],
)  # fmt: skip
def test_a_faulty_actuator_is_named_and_its_rent_is_seen(world, fault, kind):
    world = world()
    world.planner.wanted = 2
    setattr(world.cloud.faults, fault, True)
    kinds = set()
    for _ in range(14):
        note = world.step()
        kinds |= {name for name, count in note.findings.items() if count}
        assert world.unseen() == []
    assert kind in kinds
    setattr(world.cloud.faults, fault, False)
    world.step(times=14)
    assert world.unseen() == []
    assert world.step().serving >= 2


def test_an_actuator_that_ignores_stops_is_named_until_it_obeys(world):
    world = world()
    world.planner.wanted = 1
    world.step(times=6)
    world.planner.wanted, world.cloud.faults.ignores_stop = 0, True
    note = world.step(times=8)
    assert note.findings["stuck"] == 1
    assert world.unseen() == []
    world.cloud.faults.ignores_stop = False
    note = world.step(times=5)
    assert (note.findings["stuck"], world.cloud.running) == (0, [])


def test_an_engine_that_the_list_forgets_keeps_its_rent_while_it_serves(world):
    world = world()
    world.planner.wanted = 1
    world.step(times=6)
    world.cloud.faults.forgets = {engine.token for engine in world.cloud.engines}
    note = world.step(times=10)
    assert note.findings["forgotten"] == 1
    assert world.unseen() == []
    assert len(world.cloud.engines) == 1  # nothing was started in its place


def test_an_end_is_booked_at_the_first_list_without_the_engine(world):
    """It is believed a minute later; rent is that of the cloud but for one look of ten seconds."""
    world = world()
    world.planner.wanted = 1
    world.step(seconds=10, times=15)
    world.planner.wanted = 0
    world.step(seconds=10, times=15)
    (engine,), (row,) = world.cloud.engines, world.rows().values()
    assert row.gone_us == engine.until_us + 10 * S
    assert done(world) == [("start", "done"), ("stop", "done")]


def test_a_forgotten_engine_has_rent_until_it_last_served(world):
    world = world()
    world.planner.wanted = 1
    world.step(times=6)
    (engine,) = world.cloud.running
    world.cloud.faults.forgets = {engine.token}
    world.step(times=10)
    engine.until_us = world.now_us  # it ends, unasked, long after lists forgot it
    world.planner.wanted = 0
    world.step(times=5)
    row = world.rows()[engine.token]
    assert engine.until_us <= row.gone_us <= engine.until_us + 30 * S
    assert world.unseen() == []


@pytest.mark.parametrize(("notice_s", "cut"), [(120, 0), (0, 1)])
def test_a_spot_engine_drains_on_its_notice_and_another_takes_its_place(world, notice_s, cut):
    """The control is a market that gives no notice: the stream is cut, and the books still hold."""
    world = world(billing="spot", interruptions_per_day=2)
    world.planner.wanted = 1
    world.step(times=6)
    (engine,) = world.cloud.running
    world.cloud.busy_places = {engine.place}
    world.cloud.faults.ends = {engine.token: world.now_us + notice_s * S}
    note = world.step(seconds=10)
    assert (note.findings["interrupted"], note.findings["never_ready"]) == (min(1, notice_s), 0)
    world.step(seconds=10, times=2)
    world.cloud.busy_places = set()  # what ran there has ended
    world.step(seconds=10, times=20)
    (other,) = world.cloud.running
    assert (other.token != engine.token, world.cloud.cut) == (True, cut)
    assert world.unseen() == []
    if not cut:
        assert done(world) == [("start", "done"), ("stop", "done"), ("start", "done")]


def test_a_stranger_is_named_and_never_stopped(world):
    world = world()
    world.cloud.rent_stranger("by-hand")
    note = world.step(times=5)
    assert note.findings["orphan"] == 1
    assert "by-hand runs, and no plan asked for it" in note.words[0]
    assert [row.owned for row in world.rows().values()] == [False]
    assert len(world.cloud.running) == 1
    world.cloud.engines[0].until_us = world.now_us
    world.step(times=4)
    assert [row.gone_us is None for row in world.rows().values()] == [False]
    first = {token: row.rent_pusd(0, world.now_us) for token, row in world.rows().items()}
    world.cloud.engines[0].until_us = None
    world.step(times=3)
    rents = {token: row.rent_pusd(0, world.now_us) for token, row in world.rows().items()}
    assert len(rents) == 2, "another life has a row of its own"
    assert {token: rents[token] for token in first} == first


def test_one_pool_s_engines_in_the_list_of_another_change_nothing_there(world):
    """A program that lists what it has, whatever pool it is asked for."""
    world = world()
    there = FleetInstance("q.0.k", "q", 0, True, InstanceRent(USD), world.now_us)
    fence = take_lease(world.ledger, "q", "h", now_us=world.now_us, length_us=900 * S)
    books = ScalingBooks(world.ledger, "q", fence, now_us=world.now_us)
    books.intend(FleetChange("q", 0, "act", "start", "q.0.k", 1, "r", "w", None, 0), there)
    world.cloud.engines.append(RentedEngine("i-q", "q.0.k", 0, world.now_us))
    note = world.step(times=5)
    assert note.findings["duplicate"] == 1
    assert "i-q is of pool q and listed for p" in note.words[0]
    assert world.rows() == {}
    with world.ledger.connect() as connection:
        assert open_instances(connection, "q") == [there]


def test_the_planner_itself_buys_what_earns_and_ends_what_does_not(world):
    world = world()
    terms, made = world.setup.pool_terms(), []

    def planner(memory):
        made.append(make_planner(terms, memory))
        return made[-1]

    world.make_planner = planner
    world.new_scaler()
    note = world.step(seconds=30, times=30)
    assert note.running == note.serving == 2  # 60 s of work a minute; one engine gives 51
    assert note.reason in ("earns_rent", "hold")
    world.demand = {"chat": 0}
    before = made[-1]
    world.new_scaler()  # what was learned is in the books
    world.step(seconds=61)
    assert made[-1] is not before
    assert made[-1].memory()
    note = world.step(seconds=60, times=90)
    assert (note.running, world.cloud.running) == (0, [])
    assert world.unseen() == []
    with world.ledger.connect() as connection:
        whole = scored_whole(connection, "p")
    assert whole.ran.total_pusd < whole.as_configured.total_pusd
    assert whole.ran.total_pusd < whole.all_api.total_pusd
