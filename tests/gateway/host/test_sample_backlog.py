"""Samples that a ledger which is away did not take are stored when it is back."""

import dataclasses
from itertools import pairwise

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.exc import OperationalError

from gateway.host import sample_backlog
from gateway.host.sample_backlog import SampleBacklog
from ledger.database import make_engine, migrate, sqlite_url
from ledger.fleet.samples import FleetSample, add_samples
from ledger.fleet.use import uses
from ledger.orm.fleet import HOUR_US, EngineSampleRow

S = 10**6
NOON_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % HOUR_US


@pytest.fixture
def books(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    engine = make_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def backlog(books) -> SampleBacklog:
    return SampleBacklog(lambda samples: add_samples(books, samples))


@pytest.fixture
def away(books):
    """While it is set, each statement fails as on a server that is gone."""
    state = {"away": False}

    def refuse(*_args) -> None:
        if state["away"]:
            raise OperationalError("INSERT", {}, Exception("connection refused"))

    event.listen(books, "before_cursor_execute", refuse)
    return state


def taken(second: int, health: str = "healthy") -> list[FleetSample]:
    at_us = NOON_US + second * S
    return [FleetSample(at_us, "main", f"pool:main/{n}", health) for n in (0, 1)]


def stored(books) -> list[tuple[int, str]]:
    query = select(EngineSampleRow.at_us, EngineSampleRow.engine).order_by(EngineSampleRow.at_us)
    with books.connect() as connection:
        rows = connection.execute(query).all()
    return [((at_us - NOON_US) // S, engine[-1]) for at_us, engine in rows]


def test_what_could_not_be_stored_is_stored_later_and_once(books, backlog, away, caplog) -> None:
    for second in range(0, 60, 10):
        away["away"] = 10 <= second < 50
        backlog.add(taken(second))
        assert backlog.flush(NOON_US + second * S) is not away["away"]
        if away["away"]:
            away["away"] = False
            assert stored(books) == [(0, "0"), (0, "1")]
    assert stored(books) == [(second, n) for second in range(0, 60, 10) for n in ("0", "1")]
    assert (
        "engine samples were not stored engines=2 waiting_rounds=3 error=connection refused"
        in caplog.text
    )


def test_a_database_that_is_locked_is_a_ledger_that_is_away(books, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ledger.database.BUSY_TIMEOUT_MS", 50)
    impatient = make_engine(sqlite_url(tmp_path / "ledger.db"))
    backlog = SampleBacklog(lambda samples: add_samples(impatient, samples))
    with books.connect() as other:
        other.execute(text("UPDATE engine_samples SET health = 'x'"))  # holds the write lock
        backlog.add(taken(0))
        assert not backlog.flush(NOON_US)
    assert backlog.flush(NOON_US)
    assert stored(books) == [(0, "0"), (0, "1")]
    impatient.dispose()


def test_what_was_stored_although_the_answer_was_lost_does_not_block_the_rest(
    books, backlog
) -> None:
    add_samples(books, taken(0))
    for second in (0, 10):
        backlog.add(taken(second))
    assert backlog.flush(NOON_US + 10 * S)
    assert stored(books) == [(0, "0"), (0, "1"), (10, "0"), (10, "1")]


def test_samples_of_an_hour_that_may_be_packed_are_given_up_and_leave_a_marked_gap(
    books, backlog, caplog
) -> None:
    """Else `ledger verify` would find an hour that is not what its samples say."""
    backlog.add(taken(0))
    backlog.add(taken(3_600, "loading"))
    assert backlog.flush(NOON_US + 3_600 * S + 545 * S)
    assert stored(books) == [(3_590, "0"), (3_590, "1"), (3_600, "0"), (3_600, "1")]
    assert "engine samples are discarded" in caplog.text


@pytest.mark.parametrize("after", ["loading", "draining", "down", "healthy"])
def test_a_gap_that_stays_is_no_down_time(books, away, monkeypatch, after) -> None:
    """The control: without the mark the first sample stands for the whole gap."""
    monkeypatch.setattr(sample_backlog, "ROUNDS", 3)
    backlog = SampleBacklog(lambda samples: add_samples(books, samples))
    backlog.add(taken(0))
    backlog.flush(NOON_US)
    away["away"] = True
    for second in range(10, 300, 10):
        backlog.add(taken(second))
        backlog.flush(NOON_US)
    away["away"] = False
    for second in (300, 310, 320):
        backlog.add(taken(second, after))
    assert backlog.flush(NOON_US + 320 * S)
    with books.connect() as connection:
        (use,) = uses(connection, "main", NOON_US, NOON_US + 3_600 * S).values()
    down_s = 0 if after == "healthy" else 2 * 30
    assert use.down_us == down_s * S
    assert sum(last - first for first, last in use.up) == (640 - 60 * (after == "down")) * S


def test_no_more_is_kept_than_its_bound(books, backlog, away, monkeypatch) -> None:
    monkeypatch.setattr(sample_backlog, "ROUNDS", 3)
    backlog = SampleBacklog(lambda samples: add_samples(books, samples))
    away["away"] = True
    for second in range(0, 50, 10):
        backlog.add(taken(second))
        backlog.flush(NOON_US)
    away["away"] = False
    assert backlog.flush(NOON_US)
    assert sorted({second for second, _ in stored(books)}) == [10, 20, 30, 40]


@pytest.mark.parametrize(
    ("news", "stored_at"),
    [
        ({}, [0, 40, 80]),
        *(({name: 1}, [0, 40, 60, 100]) for name in ("running", "waiting", "busy_us")),
        ({"health": "down"}, [0, 40, 60, 70, 110]),
        ({"output_tokens_total": 8}, [0, 40, 60, 70, 110]),
    ],
)
def test_rounds_in_which_nothing_happens_are_stored_together(books, news, stored_at) -> None:
    """What happens once, at 60 s, is stored at once."""
    stores: list[int] = []

    def store(samples) -> None:
        stores.append(len(samples) // 2)
        add_samples(books, samples)

    backlog, at_s, usual = SampleBacklog(store), [], {"output_tokens_total": 7, "running": 0}
    for second in range(0, 120, 10):
        changes = {**usual, **news} if second == 60 else usual
        backlog.add([dataclasses.replace(sample, **changes) for sample in taken(second)])
        if backlog.is_due(NOON_US + second * S):
            at_s.append(second)
            assert backlog.flush(NOON_US + second * S)
    assert at_s == stored_at
    assert stores == [(at - before) // 10 for before, at in pairwise([-10, *at_s])]
    assert len(stored(books)) == 2 * sum(stores)
