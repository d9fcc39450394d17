"""Sums that are not their rows' are found, whichever of them was edited."""

import pytest
from sqlalchemy import text

from ledger.journals.records import ComparedCost
from ledger.sums.rollups import Rollups
from ledger.verify.rollups import sums_are_the_rows


@pytest.fixture
def books(engine, opened, settled, write, seal_all):
    """Two of an own engine, one still open; all that is final is added up."""
    own = {"backend": "own", "pool": "chat", "provider": None, "holds": ()}
    elsewhere = (ComparedCost("a/b", 1, 9),)
    write(
        engine, opened(1, **own), settled(1, compared=elsewhere), opened(2, **own),
        settled(2), opened(3, **own),
    )  # fmt: skip
    seal_all(engine)
    while Rollups(engine).follow():
        pass
    return engine


def findings(engine) -> list[str]:
    with engine.connect() as connection:
        return [subject.split()[0] for subject, _ in sums_are_the_rows(connection)]


def test_sums_that_follow_are_sound(books) -> None:
    assert findings(books) == []


@pytest.mark.parametrize(
    ("statement", "subjects"),
    [
        ("UPDATE rollup_hours SET cost_low = cost_low + 1", ["rollup_hours"]),
        ("UPDATE rollup_days SET attempts = 1", ["rollup_days"]),
        ("DELETE FROM rollup_compared_hours", ["rollup_compared_hours"]),
        ("UPDATE rollup_compared_days SET scaled = 1", ["rollup_compared_days"]),
        ("DELETE FROM rollup_load_hours", ["rollup_load_hours"]),
        ("UPDATE attempts SET engine_us = 8 WHERE seq = 1", ["rollup_hours", "rollup_days"]),
        ("UPDATE rollup_tag_hours SET cost_low = cost_low + 1", ["rollup_tag_hours"]),
        ("UPDATE rollup_tag_days SET attempts = 1", ["rollup_tag_days"]),
        ("UPDATE rollup_key_hours SET unpriced = 1", ["rollup_key_hours"]),
        ("UPDATE rollup_key_days SET attempts = 1", ["rollup_key_days"]),
        (
            "DELETE FROM rollup_waiting",
            [
                "r3.1",
                "rollup_hours",
                "rollup_days",
                "rollup_tag_hours",
                "rollup_tag_days",
                "rollup_key_hours",
                "rollup_key_days",
            ],
        ),
        ("UPDATE rollup_days SET start_us = start_us + 86400000000", ["rollup_days"] * 2),
    ],
)
def test_what_is_off_is_found(books, statement, subjects) -> None:
    with books.begin() as connection:
        connection.execute(text(statement))
    assert findings(books) == subjects
