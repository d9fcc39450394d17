"""What stands for rows that went has keys that say of which step it is."""

from ledger.orm import tables as orm


def test_lines_belong_to_a_condensing_and_sums_to_a_window() -> None:
    keys = {
        table: [column.name for column in table.__table__.primary_key]
        for table in (
            orm.PostingCompactionRow,
            orm.CondensedPostingRow,
            orm.CondensedRefusalRow,
            orm.RetiredHoldsRow,
        )
    }
    assert keys[orm.PostingCompactionRow] == ["number"]
    assert keys[orm.CondensedPostingRow] == keys[orm.CondensedRefusalRow] == ["number", "line"]
    assert keys[orm.RetiredHoldsRow] == ["budget_id", "window"]
