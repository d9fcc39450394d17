"""Spending from before is a table of its own: no column of it leads into the books."""

from ledger.orm.history import SpendHistoryRow


def test_it_names_nothing_of_the_books() -> None:
    table = SpendHistoryRow.__table__
    assert not table.foreign_keys
    assert {column.name for column in table.primary_key} == {"source", "day", "cell"}
