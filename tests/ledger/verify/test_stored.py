"""What stored objects take is counted by their team."""

import pytest
from sqlalchemy import insert, text

from ledger.orm import tables as orm
from ledger.verify.stored import stored_bytes_add_up


@pytest.fixture
def stored(engine):
    row = {"kind": "item", "residency": "any", "wrapped_key": b"k", "sealed": b"s",
           "created_us": 1, "expires_us": 9}  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(orm.StoredObjectRow), [
            {**row, "team_id": team, "id": name, "size": size}
            for team, name, size in (("a", "1", 5), ("a", "2", 6), ("b", "3", 7))
        ])  # fmt: skip
        connection.execute(insert(orm.StoredBytesRow), [
            {"team_id": "a", "bytes": 11}, {"team_id": "b", "bytes": 7},
            {"team_id": "c", "bytes": 0},
        ])  # fmt: skip
    return engine


def test_sums_are_the_sizes(stored) -> None:
    with stored.connect() as connection:
        assert list(stored_bytes_add_up(connection)) == []


@pytest.mark.parametrize("edit", [
    "UPDATE stored_bytes SET bytes = 10 WHERE team_id = 'a'",
    "UPDATE stored_bytes SET bytes = 1 WHERE team_id = 'c'",
    "DELETE FROM stored_bytes WHERE team_id = 'b'",
    "UPDATE stored_objects SET size = 8 WHERE id = '3'",
    "UPDATE stored_objects SET team_id = 'b' WHERE id = '1'",
    "DELETE FROM stored_objects WHERE id = '3'",
])  # fmt: skip
def test_every_edit_is_found(stored, edit) -> None:
    with stored.begin() as connection:
        connection.execute(text(edit))
        assert list(stored_bytes_add_up(connection))
