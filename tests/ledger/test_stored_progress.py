"""How a stored object that is still made stands."""

import pytest

from ledger.database import make_engine
from ledger.orm.base import LedgerBase
from ledger.orm.stored import StoredBytesRow, StoredObjectRow
from ledger.stored_objects import SealedObject, StorageBounds, cancel_object, store_objects
from ledger.stored_progress import ObjectProgress, find_progress

AMPLE = StorageBounds(10**9, 10**9)
LEASE_US, EXPIRES_US = 500, 1_000


@pytest.fixture
def engine(database_url: str):
    made = make_engine(database_url)
    tables = [StoredObjectRow.__table__, StoredBytesRow.__table__]
    LedgerBase.metadata.create_all(made, tables=tables)
    row = SealedObject(
        "a", "resp_1", "response", None, "any", "queued", b"k", b"s", 0, EXPIRES_US, LEASE_US
    )
    assert store_objects(made, [row], AMPLE)
    yield made
    made.dispose()


def test_it_is_its_teams_alone_until_it_expires(engine) -> None:
    assert find_progress(engine, "a", "resp_1", now_us=1) == ("queued", LEASE_US, None)
    assert find_progress(engine, "b", "resp_1", now_us=1) is None
    assert find_progress(engine, "a", "resp_1", now_us=EXPIRES_US) is None


def test_what_was_cancelled_is_made_no_more(engine) -> None:
    assert cancel_object(engine, "a", "resp_1", now_us=1)
    found = find_progress(engine, "a", "resp_1", now_us=2)
    assert found is not None
    assert found.status_at(2) == found.status_at(LEASE_US + 1) == "cancelled"
    assert not found.is_made_at(2)


def test_what_its_worker_left_has_failed() -> None:
    made = ObjectProgress("in_progress", LEASE_US, None)
    assert (made.is_made_at(LEASE_US), made.is_made_at(LEASE_US + 1)) == (True, False)
    assert made.status_at(LEASE_US + 1) == "failed"


@pytest.mark.parametrize("status", [None, "completed", "cancelled", "failed"])
def test_what_has_ended_is_not_made(status: str | None) -> None:
    ended = ObjectProgress(status, 9, None)
    assert (ended.status_at(99), ended.is_made_at(1)) == (status, False)
