"""Lengths of past answers: reported ones only, the latest, in their order, on both databases."""

import pytest

from ledger.journals.records import TokenCounts
from ledger.lengths import recent_lengths
from ledger.writing.repository import LedgerRepository


@pytest.fixture
def answered(engine, opened, settled):
    def write(count, **changes):
        records = []
        for n in range(count):
            tokens = TokenCounts(input=100, cached=20, cache_write=3, cache_write_1h=4, output=n)
            records += [
                opened(n, model="chat", team_id="search"),
                settled(
                    n, **{"status": "finished", "basis": "reported", "tokens": tokens} | changes
                ),
            ]
        LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)
        return engine

    return write


def test_the_latest_answers_come_oldest_first(answered):
    engine = answered(5)
    found = recent_lengths(engine, 3)
    assert [(*length[:4], length.cut) for length in found] == [
        ("chat", "search", 127, n, False) for n in (2, 3, 4)
    ]
    assert all(length.opened_us > 0 for length in found)
    assert len(recent_lengths(engine)) == 5


@pytest.mark.parametrize(("reason", "cut"), [("length", True), ("stop", False), (None, False)])
def test_what_a_limit_ended_is_told_apart(answered, reason, cut):
    (found,) = recent_lengths(answered(1, finish_reason=reason))
    assert found.cut is cut


@pytest.mark.parametrize(
    "changes", [{"status": "client_gone"}, {"basis": "estimated"}, {"disputed": True}]
)
def test_what_did_not_end_was_not_reported_or_is_disputed_says_nothing(answered, changes):
    assert recent_lengths(answered(3, **changes)) == []


def test_an_empty_ledger_knows_nothing(engine):
    assert recent_lengths(engine) == []
