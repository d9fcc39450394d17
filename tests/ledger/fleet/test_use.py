"""What samples and settled attempts say of a span, in pieces of any width."""

import pytest
from sqlalchemy import insert

from ledger.fleet.use import SAMPLE_REACH_US, PoolUse, uses
from ledger.orm import tables as orm
from ledger.writing.repository import LedgerRepository

S = 10**6
HOUR_US = 3_600 * S
NOON_US = 1_780_000_000_000_000 - 1_780_000_000_000_000 % HOUR_US


@pytest.fixture
def seen(engine):
    def seen(*rows):
        values = [
            {"at_us": NOON_US + second * S, "pool": "chat", "engine": name, "health": health}
            for name, second, health in rows
        ]
        with engine.begin() as connection:
            connection.execute(insert(orm.EngineSampleRow), values)

    return seen


def found(engine, until_s, **options):
    with engine.connect() as connection:
        return uses(connection, "chat", NOON_US, NOON_US + until_s * S, **options)


def test_a_sample_stands_for_the_time_since_its_engines_last(engine, seen):
    seen(("a", 0, "healthy"), ("a", 10, "loading"), ("a", 25, "healthy"), ("a", 31, "down"),
         ("b", 5, "draining"), ("b", 9, "draining"))  # fmt: skip
    (use,) = found(engine, 100).values()
    assert use.down_us == (10 + 6 + 4) * S, "nothing stands before an engine's first sample"
    assert use.up == [(NOON_US + a * S, NOON_US + b * S) for a, b in ((0, 10), (10, 25), (5, 9))]


@pytest.mark.parametrize(
    ("health", "down_s"), [("loading", 30), ("healthy", 0), ("draining", 0), ("unknown", 0)]
)
def test_an_engine_first_seen_while_it_loads_was_not_ready_before(engine, seen, health, down_s):
    """What passed before telemetry's first sample was shown as idle: paid, ready and unused."""
    seen(("a", 30, health), ("a", 40, "healthy"))
    (use,) = found(engine, 100).values()
    assert use.down_us == down_s * S
    assert use.up == [(NOON_US + 30 * S, NOON_US + 40 * S)], "no machine was seen to run before"


def test_a_first_sample_reaches_back_no_further_than_others(engine, seen):
    seen(("a", 3_000, "loading"))
    (use,) = found(engine, 3_600).values()
    assert use.down_us == SAMPLE_REACH_US


def test_pieces_are_cut_at_their_width_and_at_the_span(engine, seen):
    seen(("a", -5, "loading"), ("a", 25, "loading"))
    pieces = found(engine, 22, width_us=10 * S)
    assert {at: use.down_us for at, use in pieces.items()} == {
        NOON_US: 10 * S, NOON_US + 10 * S: 10 * S, NOON_US + 20 * S: 2 * S,
    }  # fmt: skip


def test_silence_is_not_down_time(engine, seen):
    seen(("a", 0, "down"), ("a", 3_000, "down"))
    (use,) = found(engine, 3_600).values()
    assert use.down_us == SAMPLE_REACH_US


def test_work_counts_where_it_settled_and_lost_attempts_do_not(engine, opened, settled):
    own = {"backend": "own", "pool": "chat", "provider": None, "holds": ()}
    records = []
    for number, (team, second) in enumerate((("ads", 0), ("search", 5), ("ads", 9), ("ads", 15))):
        records.append(opened(number, team_id=team, **own))
        at_us = NOON_US + second * S
        records.append(settled(number, settled_us=at_us, engine_us=2, cost_pusd=10**number))
    records.append(opened(9, **own))
    repository = LedgerRepository(engine, host="h")
    repository.import_records(records, journal="j", at_us=1)
    repository.settle_lost("j", at_us=NOON_US + S)
    assert found(engine, 15, width_us=10 * S) == {
        NOON_US: PoolUse({"ads": 4, "search": 2}, {"ads": 101, "search": 10})
    }
