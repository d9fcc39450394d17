"""A place of a journal has one finding; old writers leave a position's number at 0."""

from sqlalchemy import insert, text

from ledger.orm import tables as orm


def test_a_place_is_unique_and_what_is_unknown_is_null() -> None:
    table = orm.JournalFindingRow.__table__
    (unique,) = [each for each in table.constraints if type(each).__name__ == "UniqueConstraint"]
    assert [column.name for column in unique.columns] == ["journal", "segment", "offset"]
    nullable = {column.name for column in table.columns if column.nullable}
    assert nullable == {"missing", "at_most_pusd"}


def test_a_position_of_an_earlier_writer_has_no_number(engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                'INSERT INTO journal_positions (journal, worker, host, segment, "offset",'
                " applied_us) VALUES ('j', 'w', 'h', 1, 2, 3)"
            )
        )
        row = {"journal": "k", "worker": "w", "host": "h", "segment": 1, "offset": 2,
               "applied_us": 3, "sequence": 9}  # fmt: skip
        connection.execute(insert(orm.JournalPositionRow), [row])
        numbers = connection.execute(
            text("SELECT sequence FROM journal_positions ORDER BY journal")
        ).scalars()
        assert list(numbers) == [0, 9]
