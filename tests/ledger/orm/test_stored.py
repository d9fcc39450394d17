"""A stored object is unique in its team, and nothing of what it says is a column."""

from ledger.orm.stored import StoredBytesRow, StoredObjectRow


def test_an_object_is_unique_in_its_team() -> None:
    table = StoredObjectRow.__table__
    (unique,) = [item for item in table.constraints if type(item).__name__ == "UniqueConstraint"]
    assert [column.name for column in unique.columns] == ["team_id", "id"]
    nullable = {column.name for column in table.columns if column.nullable}
    assert nullable == {"parent", "status", "lease_us", "cancel_us"}


def test_a_team_has_one_sum() -> None:
    assert [column.name for column in StoredBytesRow.__table__.primary_key] == ["team_id"]
