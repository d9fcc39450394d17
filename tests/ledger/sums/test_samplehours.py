"""Hours of engine samples answer as the samples do; packing again makes them the same."""

import random

import pytest
from sqlalchemy import delete, insert, select, text

from ledger.orm import tables as orm
from ledger.queries.reads import engine_samples
from ledger.spans import HOUR_US, Scope
from ledger.sums.samplehours import GRACE_US, hours_are_the_samples, pack_hours, packed_until_us

START_US = 1_780_272_000_000_000  # an hour's begin
HOURS = 30


@pytest.fixture
def sampled(engine):
    """Two engines over thirty hours, one of them away for five; KV usage not always known."""
    dice = random.Random(3)
    rows = [
        {"at_us": START_US + n * 300_000_000 + k, "pool": "p", "engine": f"p/{k}",
         "health": dice.choice(("healthy", "down")), "busy_us": n,
         "kv_usage_ppm": dice.choice((None, dice.randrange(10**6)))}
        for n in range(HOURS * 12) for k in range(2) if k or not 100 < n < 160
    ]  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.EngineSampleRow), rows)
    return engine


def pack(engine, hours: float) -> list[int]:
    at_us, found = int(START_US + hours * HOUR_US + GRACE_US), []
    while more := pack_hours(engine, at_us=at_us):
        found.append(more)
    return found


def stored(engine) -> list[tuple]:
    table = orm.EngineSampleHourRow
    with engine.connect() as connection:
        query = select(table.hour_us, table.engine, table.last_seq, table.kv_usage_ppm)
        return list(map(tuple, connection.execute(query.order_by(table.hour_us, table.engine))))


def findings(engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        return list(hours_are_the_samples(connection))


SPANS = [(0, 30), (0.3, 29.7), (7.5, 12.2), (0, 0.5), (20, 40), (26.5, 29), (3, 3)]


@pytest.mark.parametrize("packed", [0, 11, 26.4, 30])
def test_charts_are_those_of_the_samples(sampled, packed) -> None:
    scopes = [Scope(*(int(START_US + item * HOUR_US) for item in span)) for span in SPANS]
    widths = (HOUR_US, 2 * HOUR_US, 7 * HOUR_US, 1_680_000_000)

    def charts() -> list[list]:
        with sampled.connect() as connection:
            return [
                engine_samples(connection, scope, bucket_us=width)
                for scope in scopes for width in widths
            ]  # fmt: skip

    before = charts()
    pack(sampled, packed)
    assert charts() == before
    with sampled.connect() as connection:
        assert packed_until_us(connection) == (START_US + int(packed) * HOUR_US if packed else 0)


def test_hours_are_packed_once_when_they_are_over_and_again_the_same(sampled) -> None:
    assert sum(pack(sampled, 26.4)) == 2 * 26 - 4
    assert pack(sampled, 26.9) == []
    assert pack(sampled, 30) == [8]
    first = stored(sampled)
    with sampled.begin() as connection:
        connection.execute(delete(orm.EngineSampleHourRow))
    assert len(pack(sampled, 30)) == 2
    assert stored(sampled) == first
    assert findings(sampled) == []


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE engine_sample_hours SET kv_usage_ppm = 7 WHERE engine = 'p/1'",
        "UPDATE engine_sample_hours SET last_seq = 1 WHERE engine = 'p/0'",
        "DELETE FROM engine_sample_hours WHERE engine = 'p/1'",
        "INSERT INTO engine_sample_hours VALUES (0, 'p/9', 1, NULL)",
        "UPDATE engine_samples SET kv_usage_ppm = 1000001 WHERE seq = 9",
        "DELETE FROM engine_samples WHERE engine = 'p/0'",
    ],
)
def test_an_edit_is_found(sampled, edit) -> None:
    pack(sampled, 30)
    assert findings(sampled) == []
    with sampled.begin() as connection:
        connection.execute(text(edit))
    assert findings(sampled)


def test_of_two_that_pack_at_once_one_gives_way(sampled, monkeypatch) -> None:
    pack(sampled, 3)
    monkeypatch.setattr("ledger.sums.samplehours.packed_until_us", lambda _: START_US)
    assert pack(sampled, 3) == []
    monkeypatch.undo()
    assert sum(pack(sampled, 4)) == 2
