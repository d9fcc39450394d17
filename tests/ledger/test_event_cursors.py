"""A feed is told by one host at a time, and goes on where something was heard last."""

import pytest

from ledger.database import make_engine, migrate, sqlite_url
from ledger.event_cursors import (
    FIRST_WAIT_US,
    LAST_WAIT_US,
    LEASE_US,
    EventCursor,
    EventPlace,
)


@pytest.fixture
def engine(tmp_path):
    url = sqlite_url(tmp_path / "ledger.db")
    migrate(url)
    found = make_engine(url, keep_open=True)
    yield found
    found.dispose()


@pytest.fixture
def pair(engine) -> tuple[EventCursor, EventCursor]:
    first, second = (EventCursor(engine, "f", holder) for holder in ("a", "b"))
    assert (first.start(7), second.start(9)) == (7, 7)
    return first, second


def test_a_feed_begins_once(pair) -> None:
    assert pair[0].claim(0) == EventPlace(7, 0)


def test_one_tells_until_its_time_is_over(pair) -> None:
    first, second = pair
    assert first.claim(1)
    assert second.claim(LEASE_US) is None
    assert first.advance(EventPlace(8, 3), 2)
    assert second.claim(LEASE_US + 1) is None, "what was heard lengthens the turn"
    assert second.claim(LEASE_US + 2) == EventPlace(8, 3)
    assert not first.advance(EventPlace(9, 0), LEASE_US + 3), "its turn is over"
    assert second.claim(LEASE_US + 3) == EventPlace(8, 3)


def test_who_is_done_lets_others_tell(pair) -> None:
    first, second = pair
    first.claim(1)
    first.release()
    assert second.claim(1) == EventPlace(7, 0)


def test_what_nobody_heard_waits_ever_longer(pair) -> None:
    first, second = pair
    at_us, waits = 1, []
    for _ in range(12):
        assert first.claim(at_us)
        first.postpone(at_us)
        since_us = at_us
        while second.claim(at_us) is None:
            at_us += FIRST_WAIT_US
        waits.append(at_us - since_us)
        second.release()
    assert waits[:3] == [FIRST_WAIT_US, 2 * FIRST_WAIT_US, 4 * FIRST_WAIT_US]
    assert waits[-1] == LAST_WAIT_US
    assert first.claim(at_us)
    assert first.advance(EventPlace(8, 0), at_us)
    first.postpone(at_us)
    assert second.claim(at_us + FIRST_WAIT_US) == EventPlace(8, 0), "it was heard in between"
