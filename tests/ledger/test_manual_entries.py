"""Of a subject's entries that have begun the newest counts; none is ever edited."""

import msgspec
import pytest

from ledger.manual_entries import (
    PROJECT,
    RATE,
    ManualEntry,
    enter,
    entries,
    entries_in_force,
    project_teams,
    standing_entries,
    upcoming_entries,
)


@pytest.fixture
def say(engine):
    def say(subject: str, says: dict | None, from_us: int = 0) -> ManualEntry:
        with engine.begin() as connection:
            return enter(connection, ManualEntry(0, subject, says, from_us, 5, "ada", "why"))

    return say


def test_the_newest_that_has_begun_counts(engine, say) -> None:
    first, second = say(RATE + "chat", {"n": 1}), say(RATE + "chat", {"n": 2}, from_us=10)
    other = say("scenario:chat", {"n": 3})
    with engine.connect() as connection:
        found = entries(connection, RATE)
    assert found == [second, first]
    assert other not in found
    assert [entries_in_force(found, at_us)["chat"].says for at_us in (9, 10)] == [
        {"n": 1},
        {"n": 2},
    ]
    assert first.name == "chat"


def test_what_is_to_come_outlives_what_is_entered_for_an_earlier_day(engine, say) -> None:
    """Whoever corrects this month's rate has not said anything of next year's."""
    say(RATE + "chat", {"n": 2}, from_us=40)
    say(RATE + "chat", {"n": 1}, from_us=30)
    say(RATE + "chat", {"n": 0}, from_us=5)  # at once
    with engine.connect() as connection:
        found = entries(connection, RATE)
    assert [item.says for item in upcoming_entries(found, 7)] == [{"n": 1}, {"n": 2}]
    assert [entries_in_force(found, at)["chat"].says["n"] for at in (7, 29, 30, 39, 40)] == [
        0,
        0,
        1,
        1,
        2,
    ]


def test_of_one_day_the_last_entered_counts(engine, say) -> None:
    say(RATE + "chat", {"n": 1}, from_us=30)
    last = say(RATE + "chat", {"n": 2}, from_us=30)
    with engine.connect() as connection:
        found = entries(connection, RATE)
    assert upcoming_entries(found, 7) == [last]
    assert entries_in_force(found, 30)["chat"] == last


def test_what_is_taken_back_takes_what_was_to_come_along(engine, say) -> None:
    say(RATE + "chat", {"n": 1}, from_us=5)
    say(RATE + "chat", {"n": 2}, from_us=30)
    none = say(RATE + "chat", None, from_us=7)
    with engine.connect() as connection:
        found = entries(connection, RATE)
    assert upcoming_entries(found, 8) == []
    assert [entries_in_force(found, at)["chat"].says for at in (6, 7, 30)] == [{"n": 1}, None, None]
    assert none.says is None


def test_a_clock_that_was_set_back_hides_no_newer_entry(engine) -> None:
    for n, at_us in ((1, 50), (2, 40)):
        with engine.begin() as connection:
            enter(connection, ManualEntry(0, RATE + "chat", {"n": n}, at_us, at_us, "ada", None))
    with engine.connect() as connection:
        assert entries_in_force(entries(connection, RATE), 60)["chat"].says == {"n": 2}


def test_what_is_entered_again_is_the_same_entry(engine) -> None:
    """Its answer was lost on the way, and whoever asked asks once more."""

    def told(at_us: int, from_us: int | None = None, **other: object) -> int:
        said = {"says": {"n": 1}, "actor": "ada", "note": None, **other}
        begins = at_us if from_us is None else from_us
        entry = ManualEntry(0, RATE + "chat", from_us=begins, recorded_us=at_us, **said)
        with engine.begin() as connection:
            return enter(connection, entry).number

    assert [told(5), told(9)] == [1, 1]
    assert [told(10, from_us=90), told(12, from_us=90)] == [2, 2], "for a day to come"
    others = [{"says": {"n": 2}}, {"actor": "eve"}, {"note": "why"}, {"says": None}, {}]
    assert [told(20, **each_other) for each_other in others] == [3, 4, 5, 6, 7]
    assert told(21, from_us=90) == 8


def test_projects_are_their_providers_own(engine, say) -> None:
    say(PROJECT + "openai/proj_1", {"team": "search"})
    say(PROJECT + "openai/proj_2", {"team": "ads"})
    say(PROJECT + "openai/proj_2", None)
    say(PROJECT + "openai-eu/proj_3", {"team": "legal"})
    with engine.connect() as connection:
        assert project_teams(connection, "openai", 9) == {"proj_1": "search"}


def test_what_counts_is_told_by_a_clock_that_is_behind_who_entered_it(engine) -> None:
    """Red before, of projects, rates and lists of entries."""
    with engine.begin() as connection:
        says = {"team": "search"}
        given = ManualEntry(0, PROJECT + "openai/proj_1", says, 50, 50, "ada", None)
        enter(connection, given)
        assert project_teams(connection, "openai", 40) == {"proj_1": "search"}
        enter(connection, msgspec.structs.replace(given, from_us=90, recorded_us=60))
        assert standing_entries(connection, PROJECT, 40)["openai/proj_1"].from_us == 50
