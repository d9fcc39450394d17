"""The room of all teams is never passed, also by teams that store at the same instant."""

import threading

import pytest
from sqlalchemy import func, select

from ledger.orm.stored import StoredBytesRow
from ledger.storage_room import (
    SHARED_BYTES,
    SMALL_BYTES,
    NeedsToBeAlone,
    lock_room,
    store_in_room,
)
from ledger.upserts import insert_of

TEAMS, MOST = 6, 1000


def add(connection, team: str, size: int) -> None:
    rows = insert_of(connection.dialect)(StoredBytesRow).values(team_id=team, bytes=size)
    connection.execute(rows)


def summed(engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(select(func.sum(StoredBytesRow.bytes))).scalar_one() or 0)


@pytest.mark.each_database
def test_teams_that_store_at_once_fill_it_and_no_more(engine) -> None:
    """Red without the lock: each finds the room that the others use up."""
    together, refused = threading.Barrier(TEAMS), []

    def store(team: str) -> None:
        def work(connection, alone: bool) -> None:
            if not alone and connection.dialect.name == "postgresql":
                together.wait(20)  # SQLite has one writer
            if lock_room(connection, 300, MOST, alone=alone) + 300 > MOST:
                refused.append(team)
                return
            add(connection, team, 300)

        store_in_room(engine, work)

    threads = [threading.Thread(target=store, args=(f"t{number}",)) for number in range(TEAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert summed(engine) == 900
    assert len(refused) == TEAMS - 3


@pytest.mark.each_database
def test_who_stores_little_where_much_is_left_waits_for_nobody(engine) -> None:
    most = SHARED_BYTES + SMALL_BYTES
    if engine.dialect.name == "sqlite":  # which has one writer
        with engine.begin() as only:
            assert lock_room(only, SMALL_BYTES + 1, most - 1, alone=False) == 0
        return
    with engine.begin() as first, engine.begin() as second:
        assert lock_room(first, SMALL_BYTES, most, alone=False) == 0
        assert lock_room(second, SMALL_BYTES, most, alone=False) == 0
        for needed, room in ((SMALL_BYTES + 1, 2 * most), (SMALL_BYTES, most - 1)):
            with pytest.raises(NeedsToBeAlone):
                lock_room(second, needed, room, alone=False)
