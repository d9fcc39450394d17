"""Postings as rows: every column of the table, lines numbered from 0 in the order given."""

from ledger.accounts import Posting
from ledger.orm import tables as orm
from ledger.posting_rows import posting_rows, posting_values

POSTINGS = (Posting("expense:team:a", 7), Posting("payable:openai", -7))


def test_rows_have_the_columns_of_the_table() -> None:
    rows = posting_rows("attempt-1", 1_700_000_000_000_000, POSTINGS)
    assert rows[1] == {
        "entry_id": "attempt-1", "line": 1, "at_us": 1_700_000_000_000_000,
        "account": "payable:openai", "amount_pusd": -7,
    }  # fmt: skip
    assert [row["line"] for row in rows] == [0, 1]
    assert set(rows[0]) == {column.name for column in orm.PostingRow.__table__.columns} - {"seq"}


def test_rows_and_values_agree() -> None:
    rows = posting_rows("e", 1, POSTINGS)
    assert [tuple(row.values()) for row in rows] == posting_values("e", 1, POSTINGS)
