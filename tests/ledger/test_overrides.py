"""Overrides: an append-only list of which the newest of each subject counts, until it is over."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from ledger.database import make_engine, migrate, reading
from ledger.overrides import (
    API,
    DISABLED,
    NOTHING,
    Override,
    newest_override,
    overrides,
    store_override,
)


@pytest.fixture
def engine(database_url: str) -> Engine:
    migrate(database_url)
    return make_engine(database_url)


def said(subject: str, says: str, at_us: int = 1, until_us: int | None = None) -> Override:
    return Override(0, subject, says, until_us, at_us, "ann", "maintenance")


def test_the_newest_of_each_subject_counts(engine: Engine) -> None:
    assert list(overrides(engine)) == []
    store_override(engine, said("target:a", DISABLED))
    store_override(engine, said("model:*", API, until_us=9))
    store_override(engine, said("target:a", NOTHING))
    found = overrides(engine)
    assert [(finding.number, finding.subject, finding.says) for finding in found] == [
        (2, "model:*", API), (3, "target:a", NOTHING),
    ]  # fmt: skip
    assert (found[0].until_us, found[0].actor, found[0].note) == (9, "ann", "maintenance")
    with reading(engine) as connection:
        assert newest_override(connection) == 3
    engine.dispose()


def test_two_at_once_follow_one_another(engine: Engine) -> None:
    with ThreadPoolExecutor(4) as threads:
        stored = list(
            threads.map(lambda n: store_override(engine, said(f"target:{n}", DISABLED)), range(12))
        )
    assert sorted(row.number for row in stored) == list(range(1, 13))
    assert len(overrides(engine)) == 12
    engine.dispose()


def test_it_stands_until_its_time_is_over_or_it_is_taken_back() -> None:
    timed = said("target:a", DISABLED, until_us=100)
    assert timed.is_standing(99)
    assert not timed.is_standing(100)
    assert said("target:a", DISABLED).is_standing(10**18)
    assert not said("target:a", NOTHING).is_standing(0)
