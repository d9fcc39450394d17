"""Upkeep beside a running host: nothing fails, one engine at a time, and operators go first."""

import threading

import pytest

from backends.engine.decay import DecayReading
from gateway.clock import Clock
from gateway.config import schedules
from gateway.config.settings import load
from gateway.control import override_changes as verbs
from gateway.control.admin.enginehost import EngineSnapshot
from gateway.control.override_changes import OverrideAuthor
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host import rolling_restart
from gateway.host import upkeep as upkeep_module
from gateway.host.upkeep import UpkeepLoop
from gateway.runtime import Runtime
from ledger.database import make_engine
from ledger.fleet.upkeepnotes import ACTOR, read_notes
from ledger.overrides import overrides
from router.types import TargetHealth


@pytest.fixture
def keeping(served, patiently, monkeypatch):
    """An upkeep in this process, over the host's memory, orders and ledger; nothing is due yet."""
    settings, runtime = load(served.config), Runtime.load(served.state / "run" / "runtime.json")
    pool = settings.pools["main"]
    kept = pool.upkeep.model_copy(update={"restart": "0 4 * * *", "restart_on_decay": 0.15})
    kept = kept.model_copy(update={"stop": "0 20 * * *", "start": "0 7 * * *"})
    pools = {"main": pool.model_copy(update={"upkeep": kept})}
    settings = settings.model_copy(update={"pools": pools})
    monkeypatch.setattr(schedules, "restart_due_us", lambda *_: None)
    monkeypatch.setattr(schedules, "stopped_since_us", lambda *_: None)
    board, ledger = (
        SharedLoadTable(runtime.run_dir / "board", runtime.layout),
        make_engine(served.ledger),
    )
    found = UpkeepLoop(settings, runtime, board, ledger, Clock())
    found.ledger, found.settings, found.run_dir = ledger, settings, runtime.run_dir
    patiently(lambda: all(look.state.health is TargetHealth.HEALTHY for look in looks(found)))
    found.step()  # it has seen them serve
    yield found
    for item in verbs.overrides_in_force(ledger, Clock().wall_us()):
        verbs.enable(ledger, item.subject.removeprefix("target:"), author("end"))
    board.close()
    ledger.dispose()


def looks(keeping) -> list[EngineSnapshot]:
    return [keeping._host.snapshot(row) for row in (0, 1)]


def author(by: str) -> OverrideAuthor:
    return OverrideAuthor(by, None, Clock().wall_us())


def test_what_the_calendar_asks_is_done_one_by_one_and_no_request_fails(
    served, crowd, keeping, patiently, monkeypatch
):
    before = [look.life for look in looks(keeping)]
    keeping.step()
    assert [look.life for look in looks(keeping)] == before  # the control: nothing was due
    due_us = Clock().wall_us()
    monkeypatch.setattr(schedules, "restart_due_us", lambda *_: due_us)
    with crowd(served, clients=3) as (broken, whole):
        patiently(lambda: len(whole) >= 3)
        keeping.step()
        assert [look.life for look in looks(keeping)] == [before[0] + 1, before[1]]
        keeping.step()
        assert [look.life for look in looks(keeping)] == [before[0] + 1, before[1] + 1]
        keeping.step()
        patiently(lambda: len(whole) >= 9)
    assert broken == []
    assert [look.life for look in looks(keeping)] == [before[0] + 1, before[1] + 1]
    said = [
        override
        for override in overrides(keeping.ledger)
        if override.subject == "target:pool:main/0"
    ]
    assert [(line.actor, line.says) for line in said] == [(ACTOR, "nothing")]
    assert "restart of" in said[0].note
    assert "restarted (restart of" in read_notes(keeping.run_dir)["pool:main/0"].done


def test_an_engine_that_an_operator_holds_keeps_all_others_where_they_are(keeping, monkeypatch):
    before = [look.life for look in looks(keeping)]
    due_us = Clock().wall_us()
    monkeypatch.setattr(schedules, "restart_due_us", lambda *_: due_us)
    verbs.disable(keeping.ledger, keeping.settings, "pool:main/1", author("ann"))
    keeping.step()
    assert [look.life for look in looks(keeping)] == before
    waits = read_notes(keeping.run_dir)["pool:main/0"].waits
    assert waits.endswith("waits: pool:main/1 is disabled by ann")


def test_a_busy_pool_waits_and_the_patience_ends(keeping, monkeypatch):
    before = [look.life for look in looks(keeping)]
    due_us = Clock().wall_us()
    monkeypatch.setattr(schedules, "restart_due_us", lambda *_: due_us)
    monkeypatch.setattr(
        upkeep_module.drain_check, "reason_against", lambda *_: "too much is under way"
    )
    keeping.step()
    assert read_notes(keeping.run_dir)["pool:main/1"].waits.endswith("too much is under way")
    monkeypatch.setattr(schedules, "restart_due_us", lambda *_: due_us - 5 * 3600 * 10**6)
    keeping.step()
    assert read_notes(keeping.run_dir)["pool:main/1"].waits is None
    assert [look.life for look in looks(keeping)] == before


def test_an_engine_that_lost_its_pace_is_restarted_once_for_it(keeping, monkeypatch):
    started_us = Clock().wall_us() - 50 * 3600 * 10**6
    rates = {"pool:main/0": 1.0, "pool:main/1": 0.8}

    def readings(_ledger, name: str, from_us: int, until_us: int):
        rate = 1.0 if from_us < started_us + upkeep_module.FIRST_US else rates[name]
        return [
            (from_us + n * 10**7, 8, 3200 * n, round(8000 * rate * n))
            for n in range((until_us - from_us) // 10**7)
        ]

    monkeypatch.setattr(upkeep_module, "readings", readings)
    monkeypatch.setattr(keeping._host, "started_us", lambda _: started_us)
    asked = []

    def next_life(_host, row, *_):
        asked.append(row)
        raise rolling_restart.DrainTimeout("not done in time: loading")

    monkeypatch.setattr(rolling_restart, "restart_engine", next_life)
    for _ in range(3):
        keeping.step()
    assert asked == [1]  # tried in vain: not again, and never the one that is as it was
    notes = read_notes(keeping.run_dir)
    assert (notes["pool:main/0"].pace, notes["pool:main/0"].done) == (1.0, None)
    assert "at 80% of its first hours' pace at like load failed" in notes["pool:main/1"].done
    assert verbs.overrides_in_force(keeping.ledger, Clock().wall_us()) == ()
    assert isinstance(keeping._readings("pool:main/0", (0, 10**8))[0], DecayReading)


def test_a_pool_is_drained_stopped_and_started_again(
    served, keeping, stream, patiently, monkeypatch
):
    since_us = Clock().wall_us()
    monkeypatch.setattr(schedules, "stopped_since_us", lambda *_: since_us)
    monkeypatch.setattr(schedules, "starts_us", lambda *_: since_us + 3600 * 10**6)

    def stopped() -> bool:
        keeping.step()
        return all(look.word == "resting" for look in looks(keeping))

    answers = []
    asking = threading.Thread(target=lambda: answers.append(served.ask(**stream, max_tokens=300)))
    asking.start()
    patiently(lambda: sum(look.in_flight for look in looks(keeping)) == 1)
    patiently(stopped)
    asking.join()
    assert answers[0].text.rstrip().endswith("[DONE]")
    refused = served.ask()
    assert refused.status_code == 503
    assert "(disabled)" in refused.text
    patiently(lambda: all(look.state.health is TargetHealth.OFF for look in looks(keeping)))
    note = read_notes(keeping.run_dir)["pool:main/0"]
    assert (note.stops_us, note.starts_us) == (None, since_us + 3600 * 10**6)
    monkeypatch.setattr(schedules, "stopped_since_us", lambda *_: None)

    def serves() -> bool:
        keeping.step()
        return verbs.overrides_in_force(keeping.ledger, Clock().wall_us()) == ()

    patiently(serves)
    patiently(lambda: served.ask().status_code == 200)


def test_an_operators_word_wakes_a_pool_until_its_next_stop(
    served, keeping, patiently, monkeypatch
):
    since_us = Clock().wall_us()
    monkeypatch.setattr(schedules, "stopped_since_us", lambda *_: since_us)
    monkeypatch.setattr(schedules, "starts_us", lambda *_: since_us + 3600 * 10**6)

    def stopped() -> bool:
        keeping.step()
        return all(look.word == "resting" for look in looks(keeping))

    patiently(stopped)
    verbs.enable(keeping.ledger, "pool:main", author("ann"))

    def serves() -> bool:
        keeping.step()
        return all(look.state.health is TargetHealth.HEALTHY for look in looks(keeping))

    patiently(serves)
    patiently(lambda: served.ask().status_code == 200)
