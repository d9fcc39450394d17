"""A team with fifty thousand lines keeps no other team waiting."""

from collections import Counter

import pytest

from ledger.batches import lines as batchlines
from ledger.batches.fairclaims import (
    WAITING,
    ClaimFilter,
    claimed_columns,
    fair_shares,
    open_batch_conditions,
)
from ledger.batches.lines import LineStore, NewLine
from ledger.batches.store import BatchRecord, BatchStore
from ledger.orm.batches import BatchLineRow

NOW_US = 1000


@pytest.fixture
def make(engine):
    """`make("batch_1", "search", 5)`: a batch in progress with so many lines."""

    def made(name: str, team: str, count: int, kept: bool = False) -> None:
        batches, lines = BatchStore(engine), LineStore(engine, "seat/x")
        batches.create(BatchRecord(name, team, "k", "/v1/x", "24h", "f", 10, 10**9))
        numbers = range(1, count + 1)
        lines.add(name, [NewLine(n, f"c{n}", "own", b"{}") for n in numbers], kept=kept)
        batches.lease(name, "v", now_us=0, until_us=1)
        batches.move(name, "v", ("validating",), status="in_progress", total=count)

    return made


def claimed(store: LineStore, limit: int, **given: int) -> list[tuple[str, int]]:
    found = store.claim("own", limit, now_us=NOW_US, until_us=NOW_US + 1000, **given)
    return [(finding.batch_id, finding.number) for finding in found]


def test_places_are_shared_until_all_have_as_many() -> None:
    assert fair_shares(4, {"a": 0, "b": 0}) == {"a": 2, "b": 2}
    assert fair_shares(4, {"a": 7, "b": 0}) == {"b": 4}
    assert fair_shares(5, {"a": 2, "b": 0, "c": 1}) == {"a": 1, "b": 3, "c": 1}
    assert fair_shares(3, {}) == {}
    assert fair_shares(0, {"a": 1}) == {}


def test_every_team_has_its_turn(engine, make) -> None:
    make("batch_1", "large", 50)
    make("batch_2", "small", 2)
    make("batch_3", "other", 50)
    store = LineStore(engine, "seat/1")
    first = claimed(store, 6)
    assert Counter(name for name, _ in first) == {"batch_1": 2, "batch_2": 2, "batch_3": 2}
    assert Counter(name for name, _ in claimed(store, 6)) == {"batch_1": 3, "batch_3": 3}


def test_what_a_team_has_in_work_counts(engine, make) -> None:
    make("batch_1", "large", 50)
    store = LineStore(engine, "seat/1")
    assert len(claimed(store, 4)) == 4
    make("batch_2", "late", 50)
    assert {name for name, _ in claimed(LineStore(engine, "seat/2"), 4)} == {"batch_2"}


def test_of_one_team_the_oldest_come_first(engine, make) -> None:
    make("batch_1", "one", 3)
    make("batch_2", "one", 3)
    found = claimed(LineStore(engine, "seat/1"), 5)
    assert found == [("batch_1", 1), ("batch_1", 2), ("batch_1", 3), ("batch_2", 1), ("batch_2", 2)]


def test_what_one_team_lacks_the_others_get(engine, make) -> None:
    make("batch_1", "one", 1)
    make("batch_2", "two", 9)
    assert len(claimed(LineStore(engine, "seat/1"), 8)) == 8


def test_lines_that_a_providers_batch_may_take_are_left(engine, make) -> None:
    make("batch_1", "one", 2)
    make("batch_2", "two", 2, kept=True)
    store = LineStore(engine, "seat/1")
    assert {name for name, _ in claimed(store, 9, ends_by_us=10**9 - 1)} == {"batch_2"}
    assert {name for name, _ in claimed(store, 9, ends_by_us=10**9)} == {"batch_1"}


def test_by_age_alone_a_large_batch_would_have_every_place(engine, make, monkeypatch) -> None:
    """The negative control of `test_every_team_has_its_turn`."""

    def oldest(connection, wanted: ClaimFilter, limit: int):
        query = (
            claimed_columns()
            .where(BatchLineRow.state == WAITING, *open_batch_conditions(wanted.now_us))
            .order_by(BatchLineRow.batch_id, BatchLineRow.number)
            .limit(limit)
        )
        yield from connection.execute(query).all()

    monkeypatch.setattr(batchlines, "fair_rows", oldest)
    make("batch_1", "large", 50)
    make("batch_2", "small", 2)
    assert {name for name, _ in claimed(LineStore(engine, "seat/1"), 6)} == {"batch_1"}
